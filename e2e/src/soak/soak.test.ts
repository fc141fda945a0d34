import { expect, test } from 'vitest';
import { soak } from './soak.ts';

const minutes = Number(process.env.SOAK_MINUTES ?? 2);
const seed = Number(process.env.SOAK_SEED ?? Date.now() % 1_000_000);
/** For the start, the end, and what a busy machine adds. */
const AROUND_MS = 900_000;

test(
  `${minutes} minute(s) of random use leave nothing over (seed ${seed})`,
  async () => {
    expect(await soak({ minutes, seed, say: console.log })).toEqual([]);
  },
  minutes * 60_000 + AROUND_MS,
);
