import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LIMIT_VARIABLES } from '../packages/config/src/variables.ts';

const page = readFileSync('docs/operations.md', 'utf8');
const [, section = ''] = page.split('## Limits of an account');
const [table = ''] = section.split('\n## ');
const rows = table.split('\n').filter((line) => line.startsWith('| '));

test('the table of limits has every setting of one', () => {
  const settings = Object.values(LIMIT_VARIABLES).map(({ name }) => name);
  expect(settings.length).toBeGreaterThan(10);
  for (const name of settings) expect(table, name).toContain(`\`${name}\``);
});

test('each limit in the table has a test that exists', () => {
  const [, ...limits] = rows;
  expect(limits.length).toBeGreaterThan(15);
  for (const limit of limits) {
    const path = /`([^`]+\.test\.ts)` \|$/.exec(limit)?.[1] ?? '';
    expect(existsSync(path), limit).toBe(true);
  }
});
