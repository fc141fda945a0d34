import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { Harness } from './harness.ts';

/** What {@link useWorker} prepares. */
export interface WorkerFixture {
  readonly harness: Harness;
  /** The API key of an account. */
  readonly key: string;
  readonly worker: WorkerDouble;
}

/**
 * Has a control plane with an account for the tests of a file, and for each test a new worker `w1` without sandboxes.
 * @param set receives them before each test
 */
export function useWorker(set: (fixture: WorkerFixture) => void): void {
  let harness: Harness | undefined;
  let key: string;
  beforeAll(async () => {
    harness = await Harness.start();
    key = (await harness.signUp()).key;
  });
  afterAll(() => harness?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    if (harness === undefined) throw new Error('the control plane has not started');
    await harness.reset();
    set({ harness, key, worker: await harness.addWorker('w1') });
  });
}
