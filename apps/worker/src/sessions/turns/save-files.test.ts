import { Readable } from 'node:stream';
import { LIMITS } from '@svc/contract';
import { expect, it } from 'vitest';
import { saveFiles } from './save-files.ts';

const MIB = 1024 * 1024;
const whole = Buffer.alloc(64 * MIB);
/** A guest whose archive consists of `count` parts of 64 MiB and the rest. */
const guest = (count: number, rest: number) => ({
  download: async () => ({
    size: undefined,
    stream: Readable.from(
      (function* () {
        for (let index = 0; index < count; index += 1) yield whole;
        yield whole.subarray(0, rest);
      })(),
    ),
  }),
});
const store = {
  save: async (open: (signal: AbortSignal) => AsyncIterable<Uint8Array>, signal: AbortSignal) => {
    let size_bytes = 0;
    for await (const bytes of open(signal)) size_bytes += bytes.length;
    return { size_bytes, chunks: [] };
  },
};

it('files up to the limit are saved, and a guest that sends more is refused', async () => {
  const { signal } = new AbortController();
  const parts = LIMITS.sessionFilesBytes / whole.length;
  const { manifest } = await saveFiles(guest(parts, 0), store, signal);
  expect(manifest.size_bytes).toBe(LIMITS.sessionFilesBytes);
  await expect(saveFiles(guest(parts, 1), store, signal)).rejects.toMatchObject({
    code: 'payload_too_large',
  });
});
