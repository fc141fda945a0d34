import { expect } from 'vitest';
import type { TestSandbox } from '../../support/use-sandbox.ts';

const SAMPLES = 9;
/** Two sandboxes share the machine fairly, so half of the speed is to be expected; the rest is for what else runs on it. */
const MAX_RATIO = 8;

interface Pace {
  /** Medians in milliseconds. */
  readonly exec: number;
  readonly get: number;
}

/** Measures how fast a neighbour is before an attack, and compares while it runs. */
export class NeighbourWatch {
  readonly #neighbour: TestSandbox;
  readonly #before: Pace;

  private constructor(neighbour: TestSandbox, before: Pace) {
    this.#neighbour = neighbour;
    this.#before = before;
  }

  static async start(neighbour: TestSandbox): Promise<NeighbourWatch> {
    // The first command of a sandbox loads what later ones find in memory.
    await neighbour.run('true');
    return new NeighbourWatch(neighbour, await paceOf(neighbour));
  }

  /** Fails unless the neighbour and the API answer about as fast as before. */
  async expectUnharmed(): Promise<void> {
    const before = this.#before;
    const during = await paceOf(this.#neighbour);
    const seen = JSON.stringify({ before, during });
    expect(during.exec / before.exec, seen).toBeLessThan(MAX_RATIO);
    expect(during.get / before.get, seen).toBeLessThan(MAX_RATIO);
  }
}

async function paceOf(sandbox: TestSandbox): Promise<Pace> {
  const { sandboxes } = sandbox.account.client;
  const exec = await medianOf(() => sandbox.run('true'));
  const get = await medianOf(() => sandboxes.get(sandbox.id));
  return { exec, get };
}

async function medianOf(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < SAMPLES; n += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[Math.floor(SAMPLES / 2)] ?? Number.NaN;
}
