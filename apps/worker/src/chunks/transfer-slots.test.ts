import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { MemoryChunks } from '../../test/memory-chunks.ts';
import { ChunkStore } from './chunk-store.ts';
import { saveRates } from './save-rates.ts';
import { transferSlots } from './transfer-slots.ts';

const { signal } = new AbortController();

it('guests that send nothing do not keep another tenant from saving', async () => {
  const chunks = new MemoryChunks();
  const rates = saveRates(Number.MAX_SAFE_INTEGER);
  const saves = transferSlots().sessionSaves;
  const storeOf = (tenantId: string, sessionId: string) =>
    new ChunkStore({ ...chunks, saves, rates, tenantId, owner: { sessionId, generation: 1 } });
  const ending = new AbortController();
  let opened = 0;
  const silent = Array.from({ length: 8 }, (_, index) =>
    storeOf('greedy', `s${index}`).save((bounded) => {
      opened += 1;
      return new Readable({ read: () => undefined, signal: bounded });
    }, ending.signal),
  );
  const ended = Promise.allSettled(silent);
  await expect.poll(() => opened).toBeGreaterThan(0);
  const manifest = await storeOf('other', 'o').save(
    () => Readable.from([Buffer.from('files')]),
    signal,
  );
  expect(manifest.size_bytes).toBe(5);
  ending.abort(new Error('ended'));
  expect((await ended).every(({ status }) => status === 'rejected')).toBe(true);
});

it('no tenant has all slots of a kind', async () => {
  for (const [kind, slots] of Object.entries(transferSlots())) {
    const ending = new AbortController();
    const greedy = Array.from({ length: 20 }, () => slots.take(ending.signal, 'greedy'));
    const ended = Promise.allSettled(greedy);
    const give = await slots.take(signal, 'other');
    give();
    ending.abort(new Error(kind));
    await ended;
  }
});
