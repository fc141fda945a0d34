import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { MemoryChunks } from '../../test/memory-chunks.ts';
import { ChunkStore } from './chunk-store.ts';
import { saveRates } from './save-rates.ts';
import { transferSlots } from './transfer-slots.ts';

const { signal } = new AbortController();

it.each([1, 2, 6])(
  'silent guests of %i accounts do not keep another one from saving, and are saved when they go on',
  async (tenants) => {
    const chunks = new MemoryChunks();
    const rates = saveRates(Number.MAX_SAFE_INTEGER);
    const saves = transferSlots().sessionSaves;
    const storeOf = (tenantId: string) =>
      new ChunkStore({
        ...chunks,
        saves,
        rates,
        tenantId,
        owner: { sessionId: 's', generation: 1 },
      });
    const goOn = Promise.withResolvers<void>();
    let opened = 0;
    const silent = Array.from({ length: 8 * tenants }, (_, index) =>
      storeOf(`greedy ${index % tenants}`).save(async function* () {
        opened += 1;
        yield Buffer.from('x');
        await goOn.promise;
        yield Buffer.from('y');
      }, signal),
    );
    await expect.poll(() => opened).toBeGreaterThanOrEqual(3);
    const files = () => Readable.from([Buffer.from('files')]);
    expect((await storeOf('other').save(files, signal)).size_bytes).toBe(5);
    goOn.resolve();
    const sizes = (await Promise.all(silent)).map(({ size_bytes }) => size_bytes);
    expect(new Set(sizes)).toEqual(new Set([2]));
  },
);

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
