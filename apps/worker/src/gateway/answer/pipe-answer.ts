import type { ServerResponse } from 'node:http';
import type { UsageMeter } from '../usage/usage-meter.ts';
import { KeyRedactor } from './key-redactor.ts';

export interface PipeOptions {
  readonly key: string;
  readonly meter: UsageMeter;
  /** Time limit for the sandbox to read buffered bytes. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/**
 * Streams a response to the sandbox with back-pressure, and masks the key. Rejects when either side fails; the
 * meter then has the counts so far.
 */
export async function pipeAnswer(
  body: AsyncIterable<Buffer>,
  response: ServerResponse,
  { key, meter, idleMs, signal }: PipeOptions,
): Promise<void> {
  const redactor = new KeyRedactor(key);
  for await (const chunk of body) {
    meter.push(chunk);
    const piece = redactor.push(chunk);
    if (piece.length > 0 && !response.write(piece)) await drained(response, idleMs, signal);
  }
  response.end(redactor.end());
}

async function drained(
  response: ServerResponse,
  idleMs: number,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abort = () => reject(signal.reason);
  const timer = setTimeout(() => reject(new Error('the sandbox does not read')), idleMs);
  signal.addEventListener('abort', abort, { once: true });
  response.once('drain', resolve);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    response.off('drain', resolve);
  }
}
