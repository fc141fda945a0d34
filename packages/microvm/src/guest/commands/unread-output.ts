import type { Readable } from 'node:stream';
import { GrowingBuffer } from '@svc/service-kit/streams';

/** What follows the buffer that an output has for its reader. */
const waiting = new WeakMap<Readable, GrowingBuffer>();

/**
 * Adds data of the guest to an output of a command. Joins what waits to be read: the window counts bytes, but a packet
 * costs a few hundred bytes of memory, however small it is.
 */
export function addOutput(output: Readable, data: Buffer): void {
  const joined = waiting.get(output) ?? joinUnread(output);
  if (joined.length === 0 && output.readableLength === 0) output.push(data);
  else joined.append(data);
  passOn(output);
}

/** Lets the reader of an output have what waits. Call this when some of the output has been read. */
export function passOn(output: Readable): void {
  const joined = waiting.get(output);
  if (joined === undefined || joined.length === 0 || output.readableLength > 0) return;
  output.push(joined.take());
}

/** The bytes of an output that wait to be read. */
export function unreadBytes(output: Readable): number {
  return output.readableLength + (waiting.get(output)?.length ?? 0);
}

function joinUnread(output: Readable): GrowingBuffer {
  const joined = new GrowingBuffer();
  const push = output.push.bind(output);
  // `ssh2` ends the output in several places.
  output.push = (data, encoding) => {
    if (data === null && joined.length > 0) push(joined.take());
    return push(data, encoding);
  };
  waiting.set(output, joined);
  return joined;
}
