import { expect, test } from 'vitest';
import { planSync, type SyncedFile } from './plan.ts';

const listing = (files: Record<string, [size: number, modifiedMs: number]>) =>
  new Map<string, SyncedFile>(
    Object.entries(files).map(([path, [size, modifiedMs]]) => [path, { size, modifiedMs }]),
  );

test('copies what is missing, of another size, or newer', () => {
  const source = listing({ b: [1, 5], a: [2, 5], same: [3, 5.0001], newer: [4, 9], older: [5, 1] });
  const target = listing({ a: [1, 9], same: [3, 5], newer: [4, 5], older: [5, 5], extra: [1, 1] });
  expect(planSync(source, target, { deletes: false })).toEqual({
    copies: ['a', 'b', 'newer'],
    deletions: [],
    unchanged: 2,
    bytes: 7,
  });
});

test('deletes what only the target has, except for what is kept', () => {
  const target = listing({
    z: [1, 1],
    link: [1, 1],
    'link/a': [1, 1],
    'link-2': [1, 1],
    a: [1, 1],
  });
  const source = listing({ a: [1, 1] });
  expect(planSync(source, target, { deletes: true, kept: ['link'] })).toMatchObject({
    copies: [],
    deletions: ['link-2', 'z'],
    unchanged: 1,
  });
});
