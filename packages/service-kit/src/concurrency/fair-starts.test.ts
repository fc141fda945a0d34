import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { FairStarts } from './index.ts';

const NEVER = new AbortController().signal;
let busy: number;
let starts: FairStarts;
let begun: string[];
/** The intervals that run. Other code in the process has timers too. */
let intervals: Set<unknown>;

beforeEach(() => {
  vi.useFakeTimers();
  intervals = new Set();
  const [start, stop] = [setInterval, clearInterval];
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((step: () => void, ms: number) => {
    const interval = start(step, ms);
    intervals.add(interval);
    return interval;
  }) as typeof setInterval);
  vi.spyOn(globalThis, 'clearInterval').mockImplementation((interval) => {
    intervals.delete(interval);
    stop(interval);
  });
  busy = 1;
  starts = new FairStarts({ now: () => Date.now(), busyShare: () => busy });
  begun = [];
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function flood(key: string, count: number, signal = NEVER): void {
  for (let index = 0; index < count; index += 1) {
    starts.begin(key, signal).then(
      () => begun.push(key),
      () => undefined,
    );
  }
}
const of = (key: string) => begun.filter((one) => one === key).length;

test('a key that is alone never waits, however busy the event loop is', async () => {
  flood('a', 1_000);
  await vi.advanceTimersByTimeAsync(0);
  expect(of('a')).toBe(1_000);
});

test('a key that begins very many waits while there are others and the event loop is busy, and the others do not', async () => {
  flood('b', 1);
  flood('a', 1_000);
  await vi.advanceTimersByTimeAsync(0);
  expect([of('a'), of('b')]).toEqual([8, 1]);
  for (let second = 1; second <= 5; second += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    flood('b', 1);
    await vi.advanceTimersByTimeAsync(0);
    expect(of('b')).toBe(1 + second);
    expect(of('a')).toBe(8 + 20 * second);
  }
});

test('a task that counts as many delays those that follow', async () => {
  flood('b', 1);
  starts.spend('a', 48);
  flood('a', 100);
  await vi.advanceTimersByTimeAsync(1_900);
  expect(of('a')).toBe(0);
  flood('b', 1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(of('a')).toBeGreaterThan(10);
  expect(of('a')).toBeLessThan(20);
});

test('it goes on as long as the event loop is not busy, and keys take turns then', async () => {
  flood('b', 1);
  flood('a', 1_000);
  flood('c', 100);
  await vi.advanceTimersByTimeAsync(0);
  busy = 0.5;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(of('a')).toBeGreaterThan(28 + 40);
  expect(of('c')).toBeGreaterThan(28 + 40);
  expect(intervals.size).toBe(1);
});

test('it no longer waits when it is alone again, and no timer is left', async () => {
  flood('b', 1);
  flood('a', 500);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(of('a')).toBe(500);
  expect(intervals.size).toBe(0);
});

test('a task that is cancelled while it waits never begins', async () => {
  const leaving = new AbortController();
  flood('b', 1);
  flood('a', 100, leaving.signal);
  await vi.advanceTimersByTimeAsync(0);
  const late = starts.begin('a', leaving.signal);
  leaving.abort(new Error('gone'));
  await expect(late).rejects.toThrow('gone');
  await expect(starts.begin('a', leaving.signal)).rejects.toThrow('gone');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(of('a')).toBe(8);
  expect(intervals.size).toBe(0);
});

test('measures the real event loop', async () => {
  vi.useRealTimers();
  const real = new FairStarts();
  await real.begin('b', NEVER);
  await Promise.all(Array.from({ length: 30 }, () => real.begin('a', NEVER)));
});
