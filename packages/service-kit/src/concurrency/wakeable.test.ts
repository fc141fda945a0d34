import { it } from 'vitest';
import { Wakeable } from './wakeable.ts';

const NEVER = new AbortController().signal;

it('ends a wait when woken, when woken beforehand and when aborted', async () => {
  const wakeable = new Wakeable();
  const waiting = wakeable.wait(60_000, NEVER);
  wakeable.wake();
  await waiting;
  wakeable.wake();
  await wakeable.wait(60_000, NEVER);
  await wakeable.wait(60_000, AbortSignal.abort());
});
