import { expect, test } from 'vitest';
import { FailureLog, FailureLogs } from './failure-log.ts';

test('logs the first failure in a minute, with the number of those left out', () => {
  let now = 0;
  const failures = new FailureLog(() => now);
  const logged: number[] = [];
  const fail = (times: number) => {
    for (let time = 0; time < times; time += 1) failures.note((omitted) => logged.push(omitted));
  };
  fail(100);
  now = 59_000;
  fail(1);
  expect(logged).toEqual([0]);
  now = 61_000;
  fail(3);
  expect(logged).toEqual([0, 100]);
  now = 600_000;
  fail(2);
  expect(logged).toEqual([0, 100, 2]);
});

test('the failures of one key hide none of another', () => {
  let now = 0;
  const failures = new FailureLogs(() => now);
  const logged: string[] = [];
  const fail = (key: string) => failures.note(key, (omitted) => logged.push(`${key} ${omitted}`));
  for (const key of ['a', 'a', 'b', 'a']) fail(key);
  expect(logged).toEqual(['a 0', 'b 0']);
  now = 61_000;
  fail('a');
  expect(logged).toEqual(['a 0', 'b 0', 'a 2']);
  // 'a' has logged a moment ago, and is not forgotten for a new key.
  fail('c');
  fail('a');
  expect(logged).toEqual(['a 0', 'b 0', 'a 2', 'c 0']);
});
