import { beforeEach, expect, it } from 'vitest';
import { PoolTurns } from './pool-turns.ts';

const SECOND_MS = 1000;
const TEMPLATE = 'standard';
let now: number;
let turns: PoolTurns;

beforeEach(() => {
  now = 0;
  turns = new PoolTurns(() => now);
});

/** Whether a tenant that creates a sandbox now may take one of so many idle VMs. */
const mayTake = (tenantId: string, idle = 1) => turns.mayTake(TEMPLATE, tenantId, idle);

it('lets a tenant that is alone take all', () => {
  expect([3, 2, 1, 0].map((idle) => mayTake('usr_a', idle))).toEqual([true, true, true, false]);
  expect(turns.isShared()).toBe(false);
});

it('gives the last to those who create now and then, and none to one who creates all the time', () => {
  const [greedy, modest]: [boolean[], boolean[]] = [[], []];
  for (let second = 0; second < 600; second += 1) {
    now = second * SECOND_MS;
    // Each of its creates finds the last one, also the first after the other's.
    if (second % 5 === 1) modest.push(mayTake('usr_modest'));
    if (second > 10) greedy.push(mayTake('usr_greedy'));
  }
  expect(modest).not.toContain(false);
  // Until it has created more than the other one.
  expect(greedy.slice(10)).not.toContain(true);
});

it('lets everybody take all but the last', () => {
  mayTake('usr_modest');
  for (let time = 0; time < 10; time += 1) expect(mayTake('usr_greedy', 2)).toBe(true);
  expect(mayTake('usr_greedy')).toBe(false);
});

it('lets tenants take turns that create equally often', () => {
  for (let second = 0; second < 60; second += 1) {
    now = second * SECOND_MS;
    expect(mayTake(second % 2 === 0 ? 'usr_a' : 'usr_b')).toBe(true);
  }
});

it('counts what was created a while ago for little', () => {
  for (let second = 0; second < 300; second += 5) {
    now = second * SECOND_MS;
    mayTake('usr_modest');
  }
  const greedy: boolean[] = [];
  for (let second = 300; second < 330; second += 1) {
    now = second * SECOND_MS;
    greedy.push(mayTake('usr_greedy'));
  }
  expect(greedy.slice(15)).not.toContain(true);
  expect(mayTake('usr_modest')).toBe(true);
});

it('serves those who create now and then, however many others have created none for minutes', () => {
  for (let tenant = 0; tenant < 50; tenant += 1) mayTake(`usr_${tenant}`);
  const [greedy, modest]: [boolean[], boolean[]] = [[], []];
  for (let second = 500; second < 560; second += 1) {
    now = second * SECOND_MS;
    if (second % 5 === 1) modest.push(mayTake('usr_modest'));
    greedy.push(mayTake('usr_greedy'));
  }
  expect(modest).not.toContain(false);
  expect(greedy.slice(10)).not.toContain(true);
  expect(mayTake('usr_1')).toBe(true);
});

it('forgets those who have created none for ten minutes', () => {
  mayTake('usr_gone');
  for (let time = 0; time < 4; time += 1) mayTake('usr_a');
  now += 599 * SECOND_MS;
  expect(turns.isShared()).toBe(true);
  mayTake('usr_a');
  expect(mayTake('usr_a')).toBe(false);
  now += SECOND_MS;
  expect(turns.isShared()).toBe(false);
  expect(mayTake('usr_a')).toBe(true);
});

it('keeps templates apart', () => {
  mayTake('usr_b');
  for (let time = 0; time < 4; time += 1) mayTake('usr_a');
  turns.mayTake('browser', 'usr_b', 1);
  expect(turns.mayTake('browser', 'usr_a', 1)).toBe(true);
  expect(mayTake('usr_a')).toBe(false);
});
