import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { Slots } from '@svc/service-kit/concurrency';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MemoryChunks } from '../../test/memory-chunks.ts';
import { ChunkStore } from './chunk-store.ts';
import { saveRates } from './save-rates.ts';

const MIB = 1024 * 1024;
const { signal } = new AbortController();

let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-home-'));
  // 100 MiB that do not compress, in files of all sizes.
  for (let directory = 0; directory < 10; directory += 1) {
    await mkdir(join(home, `d${directory}`));
    await writeFile(join(home, `d${directory}`, 'large'), randomBytes(8 * MIB));
    for (let file = 0; file < 64; file += 1) {
      await writeFile(join(home, `d${directory}`, `f${file}`), randomBytes(32 * 1024));
    }
  }
});
afterAll(() => rm(home, { recursive: true, force: true }));

/** The home directory as the guest packs it. */
async function archive(): Promise<Buffer> {
  const args = ['--create', '--file=-', '--sparse', '--one-file-system', '.'];
  const options = { cwd: home, encoding: 'buffer', maxBuffer: 200 * MIB } as const;
  return (await promisify(execFile)('tar', args, options)).stdout;
}

it('a changed file in a home of 100 MiB costs less than 2 MiB, and no change next to nothing', async () => {
  const chunks = new MemoryChunks();
  const store = new ChunkStore({
    ...chunks,
    saves: new Slots(1),
    rates: saveRates(Number.MAX_SAFE_INTEGER),
    tenantId: 't',
    owner: { sessionId: 's', generation: 1 },
  });
  /** Saves the home, restores it, and returns the bytes that the save sent and received. */
  const save = async () => {
    const before = { sent: chunks.bytes, stored: chunks.storedBytes };
    const bytes = await archive();
    const manifest = await store.save(() => Readable.from([bytes]), signal);
    const traffic = chunks.bytes - before.sent;
    const stored = chunks.storedBytes - before.stored;
    const restored = await buffer(store.read(manifest, signal));
    expect(restored.equals(bytes)).toBe(true);
    return { traffic, stored, archive: bytes.length };
  };
  const first = await save();
  expect(first.archive).toBeGreaterThan(100 * MIB);
  expect(first.stored).toBeGreaterThan(100 * MIB);

  const unchanged = await save();
  expect(unchanged.stored).toBe(0);
  expect(unchanged.traffic).toBeLessThan(first.archive / 1_000);

  const changed = [];
  for (const directory of ['d1', 'd3', 'd5', 'd7', 'd9']) {
    await writeFile(join(home, directory, 'f17'), 'a small change');
    changed.push(await save());
  }
  // On average: where chunks end depends on the content, which is random here.
  const mean = (bytes: number[]) => bytes.reduce((sum, next) => sum + next) / bytes.length;
  expect(mean(changed.map(({ stored }) => stored))).toBeLessThan(2 * MIB);
  expect(mean(changed.map(({ traffic }) => traffic))).toBeLessThan(2 * MIB);
}, 120_000);
