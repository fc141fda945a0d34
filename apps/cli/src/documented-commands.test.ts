import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { program } from './program.ts';

const ROOT = new URL('../../../', import.meta.url).pathname;
const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Every command line of svc in the code of a page, without what a shell adds. */
function commandsIn(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(/^\s*```sh\n(.*?)^\s*```$/gms)].flatMap(([, code = '']) =>
    code.replaceAll(/\\\n/g, ' ').split('\n'),
  );
  const spans = [...text.replaceAll(/```.*?```/gs, '').matchAll(/`([^`]+)`/g)];
  return [...blocks, ...spans.map(([, code = '']) => code.replaceAll(/\s+/g, ' '))].flatMap(
    (code) =>
      [
        ...code.matchAll(
          /(?:^|(?<!kubectl -n|namespace|helm install)[\s("$])svc ([a-z][^#|&;)>"]*)/g,
        ),
      ].map(([, words = '']) => words.trim()),
  );
}

/** What is wrong with a command line; undefined if a command takes its words and options. */
function problemOf(line: string): string | undefined {
  let command: Command = program();
  const path: Command[] = [command];
  const words = line.replaceAll(/[[\]]/g, '').split(/\s+/);
  for (const word of words) {
    if (word === '--') return undefined;
    if (/^-./.test(word)) {
      const name = word.split('=')[0] ?? word;
      const known = path.some(({ options }) =>
        options.some(({ long, short }) => [long, short].includes(name)),
      );
      if (!known && name !== '--help' && name !== '--version') return `${line}: no option ${name}`;
      continue;
    }
    const next = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word));
    if (next !== undefined) {
      command = next;
      path.push(next);
    } else if (command.commands.length > 0 && command === path.at(-1) && path.length === 1) {
      return `${line}: no command ${word}`;
    } else if (command.commands.length > 0 && /^[a-z]+$/.test(word)) {
      return `${line}: ${command.name()} has no command ${word}`;
    }
  }
  return undefined;
}

test.each(PAGES)('%s names only commands and options that exist', (page) => {
  expect(commandsIn(page).map(problemOf).filter(Boolean)).toEqual([]);
});

test('the documentation names commands, and a wrong one is noticed', () => {
  const commands = PAGES.flatMap(commandsIn);
  expect(commands.length).toBeGreaterThan(100);
  expect(commands).toContain('worker token');
  expect(problemOf('worker tokens')).toContain('worker has no command tokens');
  expect(problemOf('wroker ls')).toContain('no command wroker');
  expect(problemOf('worker token --use 2')).toContain('no option --use');
  expect(problemOf('worker token --uses 2')).toBeUndefined();
});
