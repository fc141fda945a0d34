/**
 * Changes the code of an area line by line, and reports the changes that no test notices. An area is a name of `areas.ts`, or a
 * file, lines of it or a folder, with tests next to it: `npm run mutation -- <area> [further tests …]`. Exits with 1 below 85 %.
 *
 * The results are kept in `.cache/mutation/<area>.json`. The next run tries again what survived, and what a changed file or
 * test concerns.
 */

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Stryker } from '@stryker-mutator/core';
import { startSharedServer } from '@svc/store/testing';
import { AREAS, type Area } from './areas.ts';

/** Of the mutants of an area, in percent. */
const LEAST_KILLED = 85;
/** For a mutant that loops, in addition to one and a half times the tests' usual time. */
const TIMEOUT_MS = 8_000;
const LINES = /:[\d-]+$/;

const [name, ...furtherTests] = process.argv.slice(2);
if (name === undefined) {
  console.error(`Usage: npm run mutation -- <area> [tests …]\nAreas: ${Object.keys(AREAS)}`);
  process.exit(2);
}
const area: Area = AREAS[name] ?? { code: [name], tests: [testOf(name)] };

await using cleanup = new AsyncDisposableStack();
cleanup.defer(await startSharedServer());
// Every change is tried in a new process, which spends most of its time on reading modules.
process.env.NODE_COMPILE_CACHE = resolve('.cache/mutation/compiled');
// Read by vitest.config.ts next to this file, in the processes that Stryker starts.
process.env.MUTATION_TESTS = JSON.stringify([...area.tests, ...furtherTests].map(testsIn));
const options: ConstructorParameters<typeof Stryker>[0] = {
  mutate: [...area.code.map(codeIn), '!**/*.test.ts'],
  plugins: ['@stryker-mutator/vitest-runner', './scripts/mutation/ignore-texts.ts'],
  ignorers: ['texts'],
  testRunner: 'vitest',
  vitest: { configFile: 'scripts/mutation/vitest.config.ts', pool: 'forks', related: false },
  coverageAnalysis: 'perTest',
  // Vitest may wait for ever when it cancels a run after the first failure.
  disableBail: true,
  concurrency: 2,
  timeoutMS: TIMEOUT_MS,
  tempDirName: '.stryker-tmp',
  ignorePatterns: ['.cache'],
  incremental: true,
  incrementalFile: `.cache/mutation/${name.replaceAll(/[/:]/g, '_')}.json`,
  reporters: ['progress-append-only', 'clear-text'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 95, low: LEAST_KILLED, break: LEAST_KILLED },
  allowConsoleColors: false,
};
// Most code also runs in hooks before the first test. Stryker tries its mutants with all tests, although those that reach them
// are enough. The second run tries the mutants that run in hooks or at import alone.
const results = await new Stryker({ ...options, ignoreStatic: true }).runMutationTest();
if (results.some(({ statusReason }) => statusReason?.startsWith('Static mutant'))) {
  process.exitCode = 0;
  await new Stryker(options).runMutationTest();
}

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
