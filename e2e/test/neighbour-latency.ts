import { expect } from 'vitest';
import { median } from './median.ts';
import type { TestSandbox } from './test-sandbox.ts';

const SAMPLES = 9;
/** Two sandboxes share the machine fairly, so a factor of 2 is expected. The rest allows for other load on the machine. */
const MAX_RATIO = 8;
/** On an idle machine a request takes so little that any other load multiplies it. */
const LEAST_MS: Latency = { exec: 40, get: 10 };

/** Median latencies in milliseconds. */
interface Latency {
  readonly exec: number;
  readonly get: number;
}

/** Measures the latency of a neighbour before an attack, and compares it during the attack. */
export class NeighbourLatency {
  readonly #neighbour: TestSandbox;
  readonly #before: Latency;

  private constructor(neighbour: TestSandbox, before: Latency) {
    this.#neighbour = neighbour;
    this.#before = before;
  }

  static async measure(neighbour: TestSandbox): Promise<NeighbourLatency> {
    // The first command of a sandbox loads pages that later commands find in memory.
    await neighbour.run('true');
    return new NeighbourLatency(neighbour, await latencyOf(neighbour));
  }

  /** Fails unless the neighbour and the API still answer about as fast as before. */
  async expectUnaffected(): Promise<void> {
    const before = this.#before;
    const during = await latencyOf(this.#neighbour);
    const seen = JSON.stringify({ before, during });
    for (const call of ['exec', 'get'] as const) {
      expect(during[call] / Math.max(before[call], LEAST_MS[call]), seen).toBeLessThan(MAX_RATIO);
    }
  }
}

async function latencyOf(sandbox: TestSandbox): Promise<Latency> {
  const { sandboxes } = sandbox.account.client;
  const exec = await medianMs(() => sandbox.run('true'));
  const get = await medianMs(() => sandboxes.get(sandbox.id));
  return { exec, get };
}

async function medianMs(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < SAMPLES; n += 1) {
    const start = performance.now();
    await work();
    times.push(performance.now() - start);
  }
  return median(times);
}
