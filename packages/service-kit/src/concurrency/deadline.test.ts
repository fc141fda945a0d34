import { getEventListeners } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { openDeadline, withDeadline } from './deadline.ts';

afterEach(() => {
  vi.useRealTimers();
});

test('aborts after its time and with its parent', async () => {
  const passed = withDeadline(undefined, 5);
  await expect.poll(() => passed.aborted).toBe(true);
  expect(passed.reason).toMatchObject({ name: 'TimeoutError' });
  const parent = new AbortController();
  const signal = withDeadline(parent.signal, 3_600_000);
  parent.abort('enough');
  expect(signal.reason).toBe('enough');
  expect(withDeadline(parent.signal, 3_600_000).reason).toBe('enough');
});

test('releases its timer and its parent when disposed', () => {
  vi.useFakeTimers();
  const parent = new AbortController();
  const deadline = openDeadline(parent.signal, 3_600_000);
  expect([vi.getTimerCount(), getEventListeners(parent.signal, 'abort').length]).toEqual([1, 1]);
  deadline[Symbol.dispose]();
  expect([vi.getTimerCount(), getEventListeners(parent.signal, 'abort').length]).toEqual([0, 0]);
  parent.abort();
  expect(deadline.signal.aborted).toBe(false);
});
