/**
 * Changes the code of a room line by line, and reports the changes that no test notices. A room is a name of `rooms.ts`, or a
 * file, lines of it or a folder, with tests next to it: `npm run mutation -- <room> [further tests …]`. Exits with 1 below 85 %.
 *
 * The results are kept in `.cache/mutation/<room>.json`. The next run tries again what survived, and what a changed file or
 * test concerns.
 */

import { statSync } from 'node:fs';
import { Stryker } from '@stryker-mutator/core';
import { startTestPostgres } from '@svc/store/testing';
import { ROOMS, type Room } from './rooms.ts';

/** Of the mutants of a room, in percent. */
const LEAST_KILLED = 85;
/** For a mutant that loops, in addition to one and a half times the tests' usual time. */
const TIMEOUT_MS = 10_000;
const LINES = /:[\d-]+$/;

const [name, ...furtherTests] = process.argv.slice(2);
if (name === undefined) {
  console.error(`Usage: npm run mutation -- <room> [tests …]\nRooms: ${Object.keys(ROOMS)}`);
  process.exit(2);
}
const room: Room = ROOMS[name] ?? { code: [name], tests: [testOf(name)] };

// One server for the whole run: to start one takes longer than most test files.
await using postgres = await startTestPostgres();
process.env.TEST_POSTGRES_URL = postgres.url;
// Read by vitest.config.ts next to this file, in the processes that Stryker starts.
process.env.MUTATION_TESTS = JSON.stringify([...room.tests, ...furtherTests].map(testsIn));
const stryker = new Stryker({
  mutate: [...room.code.map(codeIn), '!**/*.test.ts'],
  plugins: ['@stryker-mutator/vitest-runner', './scripts/mutation/ignore-texts.ts'],
  ignorers: ['texts'],
  testRunner: 'vitest',
  vitest: { configFile: 'scripts/mutation/vitest.config.ts', pool: 'forks', related: false },
  coverageAnalysis: 'perTest',
  concurrency: 1,
  timeoutMS: TIMEOUT_MS,
  tempDirName: '.stryker-tmp',
  incremental: true,
  incrementalFile: `.cache/mutation/${name.replaceAll(/[/:]/g, '_')}.json`,
  reporters: ['clear-text'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: LEAST_KILLED, break: LEAST_KILLED },
  allowConsoleColors: false,
});
await stryker.runMutationTest();

/** A file may be followed by lines: `file.ts:10-20`. */
function codeIn(path: string): string {
  return path.endsWith('.ts') || LINES.test(path) ? path : `${path}/**/*.ts`;
}

function testOf(path: string): string {
  return path.replace(LINES, '').replace(/\.ts$/, '.test.ts');
}

function testsIn(path: string): string {
  return statSync(path).isDirectory() ? `${path}/**/*.test.ts` : path;
}
