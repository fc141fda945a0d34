import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LIMITS } from '@svc/contract';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readNumbering } from './directory.ts';
import { FrameNumbers } from './frame-numbers.ts';

const BLOCK = LIMITS.frameNumbersBlock;

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-numbers-'));
});

afterEach(async () => {
  vi.useRealTimers();
  await rm(directory, { recursive: true });
});

function numbersOf(
  reserve: (after: number, signal: AbortSignal) => Promise<number>,
  reserved = BLOCK,
) {
  const asked = vi.fn(reserve);
  return {
    asked,
    numbers: new FrameNumbers({ directory, numberer: 'n', reserved, reserve: asked }),
  };
}

it('asks for no more while at least half a block is left', async () => {
  const { asked, numbers } = numbersOf(async (after) => after + BLOCK);
  await numbers.use(BLOCK / 2);
  expect(asked).not.toHaveBeenCalled();
});

it('reserves ahead of need, without waiting, and records it for a restart', async () => {
  const answer = Promise.withResolvers<number>();
  const { asked, numbers } = numbersOf(() => answer.promise);
  await numbers.use(BLOCK / 2 + 1);
  await numbers.use(BLOCK);
  expect(asked).toHaveBeenCalledTimes(1);
  let used = false;
  const waiting = numbers.use(BLOCK + 1).then(() => {
    used = true;
  });
  await Promise.resolve();
  expect(used).toBe(false);
  answer.resolve(2 * BLOCK);
  await waiting;
  await numbers.close();
  expect(await readNumbering(directory)).toMatchObject({ numberer: 'n', reserved: 2 * BLOCK });
});

it('goes on with what is reserved while no more can be, and refuses the first number beyond', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { asked, numbers } = numbersOf(async () => {
    throw new Error('unreachable');
  });
  for (let number = BLOCK - 100; number <= BLOCK; number += 1) await numbers.use(number);
  expect(asked).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(1_000);
  await numbers.use(BLOCK);
  expect(asked).toHaveBeenCalledTimes(2);
  await expect(numbers.use(BLOCK + 1)).rejects.toThrow('unreachable');
});

it('reserves enough for a batch that is larger than a block, and rejects an answer that is not', async () => {
  await numbersOf(async (after) => after + BLOCK).numbers.use(3 * BLOCK);
  const { numbers } = numbersOf(async () => BLOCK);
  await expect(numbers.use(BLOCK + 1)).rejects.toThrow('too few');
});

it('aborts a request under way when it is closed', async () => {
  const { numbers } = numbersOf(
    (_after, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  const using = numbers.use(BLOCK + 1);
  using.catch(() => undefined);
  await numbers.close();
  await expect(using).rejects.toThrow('closed');
});
