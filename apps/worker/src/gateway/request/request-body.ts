import type { IncomingMessage } from 'node:http';
import { GrowingBuffer } from '@svc/service-kit/streams';
import { JsonScanner } from '../json/json-scanner.ts';
import type { FoundValue } from '../json/value-capture.ts';
import type { Target } from './endpoints.ts';

/** Why a body is not forwarded. */
export type BodyProblem = 'too_large' | 'too_much_held' | 'malformed';

export class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly problem: BodyProblem;

  constructor(problem: BodyProblem) {
    super(`the request body is ${problem}`);
    this.problem = problem;
  }
}

/** Counts the bytes of bodies that the gateway holds for a sandbox. `take` is false beyond the limit. */
export interface HeldBytes {
  take(bytes: number): boolean;
  give(bytes: number): void;
}

const WATCHED = ['stream', 'stream_options', 'background'];
const WITH_USAGE = '{"include_usage":true}';
/** Bound of repeated members. More of them are an attack. */
const MAX_FOUND = 16;

/** Whether bodies for this target are rewritten. */
export function isRewritten({ method, path }: Target): boolean {
  return method === 'POST' && (path === '/chat/completions' || path === '/responses');
}

/** The chunks of a body, up to `maxBytes`. Throws a {@link BodyError} beyond. Leaves the connection alone. */
export async function* limitedBody(
  request: IncomingMessage,
  maxBytes: number,
): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > maxBytes) throw new BodyError('too_large');
    yield chunk as Buffer;
  }
}

/**
 * Reads a body, rewritten so that the vendor reports token counts: Chat Completions report the usage of a stream only on
 * request, and background responses report it where the gateway does not see it. The caller returns what this takes of `held`.
 *
 * @throws BodyError
 */
export async function readRewritten(
  body: AsyncIterable<Buffer>,
  target: Target,
  held: Pick<HeldBytes, 'take'>,
): Promise<Buffer> {
  const found: FoundValue[] = [];
  const scanner = new JsonScanner(WATCHED, (value) => {
    // One beyond the bound is kept, to detect the excess.
    if (found.length <= MAX_FOUND) found.push(value);
  });
  const collected = new GrowingBuffer();
  for await (const chunk of body) {
    if (!held.take(chunk.length)) throw new BodyError('too_much_held');
    scanner.push(chunk);
    collected.append(chunk);
  }
  if (found.length > MAX_FOUND) throw new BodyError('malformed');
  const whole = collected.take();
  return target.path === '/responses'
    ? replaced(whole, found, 'background', 'false')
    : askingForUsage(whole, found);
}

function askingForUsage(body: Buffer, found: readonly FoundValue[]): Buffer {
  const streams = found.some(
    ({ path, text }) => path === 'stream' && text !== 'false' && text !== 'null',
  );
  if (!streams) return body;
  if (found.some(({ path }) => path === 'stream_options')) {
    return replaced(body, found, 'stream_options', WITH_USAGE);
  }
  const start = body.indexOf('{') + 1;
  const member = Buffer.from(`"stream_options":${WITH_USAGE},`);
  return Buffer.concat([body.subarray(0, start), member, body.subarray(start)]);
}

/** The body with every occurrence of a member's value replaced. */
function replaced(body: Buffer, found: readonly FoundValue[], path: string, by: string): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const value of found) {
    if (value.path !== path) continue;
    pieces.push(body.subarray(from, value.start), Buffer.from(by));
    from = value.end;
  }
  return pieces.length === 0 ? body : Buffer.concat([...pieces, body.subarray(from)]);
}
