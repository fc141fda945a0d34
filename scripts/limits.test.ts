import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LIMIT_VARIABLES } from '../packages/config/src/variables.ts';

const page = readFileSync('docs/operations.md', 'utf8');
const table = sectionOf('Limits of an account');

function sectionOf(title: string): string {
  const [, section = ''] = page.split(`## ${title}\n`);
  const [text = ''] = section.split('\n## ');
  return text;
}

function rowsOf(section: string): string[] {
  const [, ...rows] = section.split('\n').filter((line) => line.startsWith('| '));
  return rows;
}

test('the table of limits has every setting of one', () => {
  const settings = Object.values(LIMIT_VARIABLES).map(({ name }) => name);
  expect(settings.length).toBeGreaterThan(10);
  for (const name of settings) expect(table, name).toContain(`\`${name}\``);
});

test('each limit in the tables has a test that exists', () => {
  const limits = [table, sectionOf('What accounts share')].map(rowsOf);
  for (const rows of limits) expect(rows.length).toBeGreaterThan(5);
  for (const limit of limits.flat()) {
    const path = /`([^`]+\.test\.ts)` \|$/.exec(limit)?.[1] ?? '';
    expect(existsSync(path), limit).toBe(true);
  }
});
