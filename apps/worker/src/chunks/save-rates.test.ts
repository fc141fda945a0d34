import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { Slots } from '@svc/service-kit/concurrency';
import { expect, it } from 'vitest';
import { MemoryChunks } from '../../test/memory-chunks.ts';
import { RateClock } from '../../test/rate-clock.ts';
import type { Committer } from '../sessions/turns/committer.ts';
import { TurnCommits } from '../sessions/turns/turn-commits.ts';
import { ChunkStore } from './chunk-store.ts';
import { saveRates } from './save-rates.ts';

const MIB = 1024 * 1024;
const PER_SECOND = 32 * 1024;
const { signal } = new AbortController();

/** Guests whose files are other ones at the end of each turn, and where their sessions save them. */
function lab() {
  const time = new RateClock();
  const chunks = new MemoryChunks();
  const storage = { ...chunks, saves: new Slots(2), rates: saveRates(PER_SECOND, time) };
  const session = (tenantId: string, sessionId: string, closed = signal) => {
    const store = new ChunkStore({ ...storage, tenantId, owner: { sessionId, generation: 1 } });
    const committer = {
      commit: async (state: Parameters<Committer['commit']>[0]) => {
        await state?.saveFiles?.(signal);
      },
    } as unknown as Committer;
    const turns = new TurnCommits({
      committer,
      store,
      vm: {
        download: async () => {
          const stream = Readable.from([randomBytes(MIB / 4)]);
          return { size: undefined, stream };
        },
      },
      filesDue: { isDue: false, keep: async () => undefined, clear: async () => undefined },
      sandbox: { end: async () => undefined },
      metrics: { timeTurnCommit: () => () => undefined },
      logger: { debug: () => undefined },
      onFault: () => undefined,
      closed,
    });
    const state = { type: 'state', conversation: '', files: true } as const;
    return () => turns.commitTurn(state as Parameters<typeof turns.commitTurn>[0]);
  };
  return { time, storage, chunks, session };
}

it('sessions that save in a loop are slowed to a bound of bytes, together', async () => {
  const { time, chunks, session } = lab();
  const stored = () => chunks.storedBytes;
  // Each session that is started again, and each new one, is another guest of the same tenant.
  for (let start = 0; start < 3; start += 1) {
    const guests = [session('t', `a${start}`), session('t', `b${start}`)];
    for (let turn = 0; turn < 20; turn += 1) {
      for (const outcome of await Promise.all(guests.map((save) => save()))) {
        expect(outcome).toBe('committed');
      }
      // Saves that begin together may each exceed the bound once.
      expect(stored()).toBeLessThan(time.allowed(PER_SECOND) + MIB);
    }
  }
  expect(stored()).toBeGreaterThan(29 * MIB);
  expect(time.waited).toBeGreaterThan(800_000);
});

it('another tenant does not wait', async () => {
  const { time, storage, session } = lab();
  storage.rates.spend('t', 1000 * MIB);
  expect(await session('other', 'b')()).toBe('committed');
  expect(time.waited).toBe(0);
  expect(await session('t', 'a')()).toBe('committed');
  expect(time.waited).toBeGreaterThan(30_000_000);
});

it('a wait ends when its session closes', async () => {
  const rates = saveRates(1);
  rates.spend('t', 1000);
  const closing = new AbortController();
  const ready = rates.ready('t', closing.signal);
  closing.abort(new Error('closed'));
  await expect(ready).rejects.toThrow('closed');
  await expect(rates.ready('t', closing.signal)).rejects.toThrow('closed');
});

it('a debt is remembered however many tenants there are, and no other', async () => {
  const { time, storage } = lab();
  storage.rates.spend('t', 64 * PER_SECOND + 1);
  for (let index = 0; index < 100; index += 1) storage.rates.spend(`t${index}`, 1);
  const before = time.waited;
  await storage.rates.ready('t', signal);
  expect(time.waited).toBeGreaterThan(before);
  await storage.rates.ready('t1', signal);
  // After the time of a burst, all are as new.
  time.waited += 128_000;
  storage.rates.spend('t', 64 * PER_SECOND);
  const then = time.waited;
  await storage.rates.ready('t', signal);
  expect(time.waited).toBe(then);
});

it('tenants take turns when more saves wait than may run at once', async () => {
  const { storage } = lab();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const save = (tenantId: string, name: string) => {
    const owner = { sessionId: name, generation: 1 };
    return new ChunkStore({ ...storage, tenantId, owner }).store(async function* () {
      order.push(name);
      await gate.promise;
      yield Buffer.from(name);
    }, signal);
  };
  const attack = Array.from({ length: 5 }, (_, index) => save('t', `a${index}`));
  await expect.poll(() => order).toEqual(['a0', 'a1']);
  const victim = save('other', 'b');
  gate.resolve();
  await Promise.all([...attack, victim]);
  expect(order.slice(0, 3)).toContain('b');
});
