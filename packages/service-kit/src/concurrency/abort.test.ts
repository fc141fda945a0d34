import { describe, expect, it } from 'vitest';
import { settledWithin, untilAborted } from './abort.ts';

const NEVER = new AbortController().signal;

describe('untilAborted', () => {
  it('rejects with the reason of the signal while the promise is pending', async () => {
    const abort = new AbortController();
    const waiting = untilAborted(new Promise(() => undefined), abort.signal);
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });

  it('settles like its promise', async () => {
    await expect(untilAborted(Promise.resolve(1), NEVER)).resolves.toBe(1);
    await expect(untilAborted(Promise.reject(new Error('x')), NEVER)).rejects.toThrow('x');
  });
});

describe('settledWithin', () => {
  it('tells whether the promise settled in time', async () => {
    expect(await settledWithin(new Promise(() => undefined), 1)).toBe(false);
    expect(await settledWithin(Promise.reject(new Error('x')), 1000)).toBe(true);
  });
});
