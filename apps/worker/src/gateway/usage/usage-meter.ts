import type { LlmUsage } from '../account.ts';
import { JsonScanner } from '../json/json-scanner.ts';
import type { FoundValue } from '../json/value-capture.ts';
import { EventData } from './event-data.ts';
import { countsIn, usageOf } from './tokens.ts';

/** Paths of the token counts in the vendors' responses. */
const USAGE_PATHS = [
  // Anthropic (complete, or at the end of a stream), Chat Completions, Responses (complete).
  'usage',
  // Anthropic, at the start of a stream.
  'message.usage',
  // Responses, at the end of a stream.
  'response.usage',
  // Google; in an array if the stream is not an event stream.
  'usageMetadata',
  '[].usageMetadata',
];
const MODEL_PATHS = ['model', 'message.model', 'response.model', 'modelVersion', '[].modelVersion'];
const MAX_MODEL_CHARS = 128;
/** Values that are not JSON, beyond which the others of a response are ignored: a parser that throws takes long. */
const MAX_INVALID = 16;

/**
 * Extracts the vendor's token counts from a response that passes by, complete or as events. The model's text is inside
 * JSON strings, and so cannot be mistaken for a count.
 */
export class UsageMeter {
  readonly #scanner: JsonScanner;
  readonly #events: EventData | undefined;
  #counts: Record<string, number> = {};
  #model: string | undefined;
  #invalid = 0;

  constructor(contentType: string | undefined) {
    this.#scanner = new JsonScanner([...USAGE_PATHS, ...MODEL_PATHS], (found) => this.#take(found));
    this.#events = contentType?.startsWith('text/event-stream')
      ? new EventData(
          (piece) => this.#scanner.push(piece),
          () => this.#scanner.reset(),
        )
      : undefined;
  }

  push(chunk: Buffer): void {
    (this.#events ?? this.#scanner).push(chunk);
  }

  /** The counts so far; undefined when there are none. */
  get usage(): LlmUsage | undefined {
    return usageOf(this.#counts, this.#model);
  }

  /** Later counts replace earlier ones of the same name, since they are totals. */
  #take({ path, text }: FoundValue): void {
    if (this.#invalid >= MAX_INVALID) return;
    const value = this.#parsed(text);
    if (!path.toLowerCase().includes('usage')) {
      if (typeof value === 'string') this.#model = value.slice(0, MAX_MODEL_CHARS);
    } else Object.assign(this.#counts, countsIn(value));
  }

  /** An invalid value counts as absent. */
  #parsed(text: string | undefined): unknown {
    try {
      return JSON.parse(text ?? 'null');
    } catch {
      this.#invalid += 1;
      return undefined;
    }
  }
}
