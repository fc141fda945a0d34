import type { LlmUsage } from '../account.ts';
import { type FoundValue, JsonScanner } from '../json/json-scanner.ts';
import { EventData } from './event-data.ts';
import { countsIn, usageOf } from './tokens.ts';

/** Where vendors put the counts, and the model that answered. */
const USAGE_PATHS = [
  // Anthropic: whole or at the end; at the start of a stream. Chat Completions; Responses, whole.
  'usage',
  'message.usage',
  // Responses, at the end of a stream.
  'response.usage',
  // Google; as a list where the stream is no stream of events.
  'usageMetadata',
  '[].usageMetadata',
];
const MODEL_PATHS = ['model', 'message.model', 'response.model', 'modelVersion', '[].modelVersion'];
const MAX_MODEL_CHARS = 128;

/**
 * Reads the tokens that a vendor counted out of its answer as it goes by, whole or as events. What a model says
 * stands in strings, and so cannot pass for a count.
 */
export class UsageMeter {
  readonly #scanner: JsonScanner;
  readonly #events: EventData | undefined;
  #counts: Record<string, number> = {};
  #model: string | undefined;

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

  /** What is known so far; undefined when the vendor counted nothing. */
  get usage(): LlmUsage | undefined {
    return usageOf(this.#counts, this.#model);
  }

  /** Later counts replace earlier ones of the same name: they are totals. */
  #take({ path, text }: FoundValue): void {
    const value = parsed(text);
    if (!path.toLowerCase().includes('usage')) {
      if (typeof value === 'string') this.#model = value.slice(0, MAX_MODEL_CHARS);
    } else Object.assign(this.#counts, countsIn(value));
  }
}

/** A value that cannot be read counts as absent. */
function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return undefined;
  }
}
