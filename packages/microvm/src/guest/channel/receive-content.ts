import type { Socket } from 'node:net';
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { MicrovmError } from '../../microvm-error.ts';

const BUFFER_BYTES = 1024 * 1024;

/**
 * The next `size` bytes from the socket as a stream. Closes the socket when the stream closes. The stream fails when
 * the guest sends fewer bytes or when `signal` aborts.
 */
export function receiveContent(socket: Socket, size: number, signal: AbortSignal): Readable {
  const output = new PassThrough({ highWaterMark: BUFFER_BYTES });
  // The reader of `output` sees a failure. Nothing else waits for the pipeline.
  pipeline(socket, takeBytes(size), output, { signal }).catch((error: unknown) => {
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
    throw new MicrovmError(
      'guest_unreachable',
      'the guest closed its channel before the end of the file',
    );
  };
}
