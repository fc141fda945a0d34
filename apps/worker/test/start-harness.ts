import { onTestFinished } from 'vitest';
import { Harness, type HarnessOptions } from './harness.ts';

/** Starts a harness for the running test, which ends it. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await Harness.start(options);
  onTestFinished(() => harness[Symbol.asyncDispose]());
  return harness;
}
