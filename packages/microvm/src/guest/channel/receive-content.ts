import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { MicrovmError } from '../../microvm-error.ts';
import { CoalescingStream } from './coalescing-stream.ts';

const BUFFER_BYTES = 1024 * 1024;
const LENGTH_BYTES = 4;

/**
 * The content of a file from the socket as a stream: the next `size` bytes, or chunks when the size is undefined. Closes
 * the socket when the stream closes. The stream fails when the guest sends less or when `signal` aborts.
 */
export function receiveContent(
  socket: Socket,
  size: number | undefined,
  signal: AbortSignal,
): Readable {
  const output = new CoalescingStream(BUFFER_BYTES);
  const take = size === undefined ? takeChunks : takeBytes(size);
  // The reader of `output` sees a failure. Nothing else waits for the pipeline.
  pipeline(socket, take, output, { signal }).catch((error: unknown) => {
    output.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  output.once('close', () => socket.destroy());
  return output;
}

/** Yields exactly `size` bytes of its source, then ends. */
function takeBytes(size: number) {
  return async function* take(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let left = size;
    if (left === 0) return;
    for await (const chunk of source) {
      const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
      left -= part.length;
      yield part;
      if (left === 0) return;
    }
    throw cutOff();
  };
}

/**
 * Yields the content of chunks, each preceded by its length in 4 bytes, and ends at one of length 0. Moves the content of
 * a received buffer together and yields it at once, because its chunks may be tiny.
 */
async function* takeChunks(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const length = Buffer.alloc(LENGTH_BYTES);
  let lengthBytes = 0;
  let left = 0;
  for await (const received of source) {
    let content = 0;
    for (let at = 0; at < received.length; ) {
      if (left > 0) {
        const end = Math.min(at + left, received.length);
        received.copyWithin(content, at, end);
        content += end - at;
        left -= end - at;
        at = end;
        continue;
      }
      const copied = received.copy(length, lengthBytes, at);
      lengthBytes += copied;
      at += copied;
      if (lengthBytes < LENGTH_BYTES) break;
      lengthBytes = 0;
      left = length.readUInt32BE();
      if (left > 0) continue;
      yield received.subarray(0, content);
      return;
    }
    yield received.subarray(0, content);
  }
  throw cutOff();
}

function cutOff(): MicrovmError {
  return new MicrovmError(
    'guest_unreachable',
    'the guest closed its channel before the end of the file',
  );
}
