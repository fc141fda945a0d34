import { open } from 'node:fs/promises';
import { sleep } from '@svc/service-kit/concurrency';

const POLL_MS = 100;
const CHUNK_BYTES = 64 * 1024;

/** Copies `file` from its beginning to `out` as it grows, until the returned function is called. */
export function tailFile(file: string, out: NodeJS.WritableStream): () => Promise<void> {
  const stop = new AbortController();
  const done = follow(file, out, stop.signal);
  return async () => {
    stop.abort();
    await done;
  };
}

async function follow(file: string, out: NodeJS.WritableStream, stop: AbortSignal): Promise<void> {
  await using source = await open(file, 'r');
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    // Checked before the read, so that everything written before the stop is still copied.
    const isStopped = stop.aborted;
    const { bytesRead } = await source.read(chunk, 0, CHUNK_BYTES);
    if (bytesRead > 0) {
      out.write(Buffer.from(chunk.subarray(0, bytesRead)));
    } else if (isStopped) {
      return;
    } else {
      await sleep(POLL_MS, stop);
    }
  }
}
