import { expect, test } from 'vitest';
import { soak } from './soak.ts';

const minutes = Number(process.env.SOAK_MINUTES ?? 1);
const seed = Number(process.env.SOAK_SEED ?? Date.now() % 1_000_000);
/** For the start and the end of the service, on a loaded machine too. */
const OVERHEAD_MS = 900_000;

test(
  `${minutes} minute(s) of random use leave nothing behind (seed ${seed})`,
  async ({ signal }) => {
    const options = { minutes, seed, crashes: false, report: console.log, signal };
    expect(await soak(options)).toEqual([]);
  },
  minutes * 60_000 + OVERHEAD_MS,
);
