import { open } from 'node:fs/promises';
import { sleep } from '@svc/service-kit/concurrency';

const POLL_MS = 100;
const PIECE_BYTES = 64 * 1024;

/** Copies what is written to `file` to `out`, from its beginning, until the returned function is called. */
export function followFile(file: string, out: NodeJS.WritableStream): () => Promise<void> {
  const stop = new AbortController();
  const done = follow(file, out, stop.signal);
  return async () => {
    stop.abort();
    await done;
  };
}

async function follow(file: string, out: NodeJS.WritableStream, stop: AbortSignal): Promise<void> {
  await using source = await open(file, 'r');
  const piece = Buffer.alloc(PIECE_BYTES);
  for (;;) {
    // Asked before the read: what was written before the stop is still shown.
    const last = stop.aborted;
    const { bytesRead } = await source.read(piece, 0, PIECE_BYTES);
    if (bytesRead > 0) {
      out.write(Buffer.from(piece.subarray(0, bytesRead)));
    } else if (last) {
      return;
    } else {
      await sleep(POLL_MS, stop);
    }
  }
}
