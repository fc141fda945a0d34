import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { MemoryChunks } from '../../test/memory-chunks.ts';
import { ChunkStore } from './chunk-store.ts';
import { saveRates } from './save-rates.ts';
import { transferSlots } from './transfer-slots.ts';

const { signal } = new AbortController();

/** Stores of accounts that share the slots of a worker. */
function accounts() {
  const chunks = new MemoryChunks();
  const rates = saveRates(Number.MAX_SAFE_INTEGER);
  const saves = transferSlots().sessionSaves;
  return (tenantId: string) =>
    new ChunkStore({ ...chunks, saves, rates, tenantId, owner: { sessionId: 's', generation: 1 } });
}

it.each([1, 2, 6])(
  'silent guests of %i accounts do not keep another one from saving, and are saved when they go on',
  async (tenants) => {
    const storeOf = accounts();
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

it('silent guests are not saved when their saves are cancelled', async () => {
  const storeOf = accounts();
  const ending = new AbortController();
  let opened = 0;
  const silent = Array.from({ length: 8 }, () =>
    storeOf('greedy').save((bounded) => {
      opened += 1;
      return new Readable({ read: () => undefined, signal: bounded });
    }, ending.signal),
  );
  const ended = Promise.allSettled(silent);
  await expect.poll(() => opened).toBeGreaterThan(0);
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
