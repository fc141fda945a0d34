import { expect, test } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { Activity } from './activity.ts';
import { Connections } from './connections.ts';

test('a sandbox is idle since its last activity ended', () => {
  const clock = new ManualClock();
  clock.advance(1000);
  const activity = new Activity(clock);
  clock.advance(1000);
  expect(activity.idleSince).toBe(1000);
  activity.touch();
  expect(activity.idleSince).toBe(2000);
  const [first, second] = [activity.begin(), activity.begin()];
  clock.advance(1000);
  first();
  first();
  expect(activity.idleSince).toBeUndefined();
  clock.advance(1000);
  second();
  expect(activity.idleSince).toBe(4000);
  clock.advance(1000);
  second();
  expect(activity.idleSince).toBe(4000);
});

test('each attached client is counted, keeps the sandbox from being idle, and is closed once', () => {
  const activity = new Activity(new ManualClock());
  const connections = new Connections(activity);
  const closes: unknown[] = [];
  const attach = (name: string) =>
    connections.attach({ close: (...how) => closes.push([name, ...how]) });
  const detach = attach('a');
  const detachOther = attach('b');
  const detachLast = attach('c');
  expect(connections.count).toBe(3);
  detach();
  detach();
  expect(connections.count).toBe(2);
  expect(activity.idleSince).toBeUndefined();
  connections.closeAll(1001, 'sandbox destroyed');
  connections.closeAll(1001, 'again');
  expect(closes).toEqual([
    ['b', 1001, 'sandbox destroyed'],
    ['c', 1001, 'sandbox destroyed'],
  ]);
  expect(connections.count).toBe(0);
  // Those that were closed end by themselves.
  detachOther();
  expect(activity.idleSince).toBeUndefined();
  detachLast();
  expect(connections.count).toBe(0);
  expect(activity.idleSince).toBe(0);
});
