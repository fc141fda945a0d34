import { once } from 'node:events';
import type { Socket } from 'node:net';
import { MicrovmError } from '../../microvm-error.ts';

/** Content is sent in chunks of about this size: the guest does some work for each chunk. */
const CHUNK_BYTES = 1024 * 1024;
const END_OF_CONTENT = Buffer.alloc(4);

/** Buffers to be sent as one chunk, and their total size in bytes, which is never 0. */
interface Chunk {
  readonly parts: readonly Buffer[];
  readonly size: number;
}

/**
 * Sends the content of a `put` request: chunks, each preceded by its length, then a length of 0. Waits when the guest
 * reads slowly.
 *
 * @throws MicrovmError `guest_unreachable` when the guest closes its channel
 */
export async function sendContent(
  socket: Socket,
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of chunksOf(source)) {
    signal.throwIfAborted();
    const length = Buffer.alloc(4);
    length.writeUInt32BE(chunk.size);
    socket.cork();
    socket.write(length);
    let ready = true;
    for (const part of chunk.parts) ready = socket.write(part);
    socket.uncork();
    if (socket.destroyed) {
      throw new MicrovmError('guest_unreachable', 'the guest closed its channel');
    }
    if (!ready) await drained(socket, signal);
  }
  socket.write(END_OF_CONTENT);
}

/** Groups small buffers into chunks of at least `CHUNK_BYTES`, except for the last one. Copies nothing. */
async function* chunksOf(source: AsyncIterable<Buffer>): AsyncGenerator<Chunk> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const buffer of source) {
    if (buffer.length === 0) continue;
    parts.push(buffer);
    size += buffer.length;
    if (size < CHUNK_BYTES) continue;
    yield { parts, size };
    parts = [];
    size = 0;
  }
  if (size > 0) yield { parts, size };
}

/** Settles when the guest has read what was sent, or has closed the connection. */
export async function drained(socket: Socket, signal: AbortSignal): Promise<void> {
  const settled = new AbortController();
  const either = AbortSignal.any([signal, settled.signal]);
  try {
    await Promise.race([
      once(socket, 'drain', { signal: either }),
      once(socket, 'close', { signal: either }),
    ]);
  } finally {
    settled.abort();
  }
}
