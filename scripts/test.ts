/**
 * Runs the tests, then prints the slowest files and, last, one line of totals: `N passed, N failed`. However the run ends,
 * nothing that it started outlives it.
 * Arguments go to vitest, so `npm test -- packages/sdk` runs that folder's tests.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { INTERRUPTS } from '@svc/service-kit/process';
import { endRun } from './end-run.ts';

const SLOWEST_FILES = 10;

/** The part of vitest's JSON report that is read here. */
interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numTotalTests: number;
  /** False also when a file could not be loaded or an error escaped, which count no test. */
  readonly success: boolean;
  readonly testResults: readonly TestFile[];
}

/** One test file of the report; its times are in milliseconds since the epoch. */
interface TestFile {
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
}

const directory = await mkdtemp(join(tmpdir(), 'svc-test-'));
// Like /tmp: PostgreSQL, for one, runs as a user of its own.
await chmod(directory, 0o1777);
try {
  process.exitCode = await runTests(process.argv.slice(2));
} finally {
  // Vitest ends at once when it is told to, without waiting for what the tests have started.
  for (const { pid, command } of await endRun(directory)) {
    console.error(`svc: ended what the tests had left running: ${pid} ${command}`);
  }
}

async function runTests(args: readonly string[]): Promise<number> {
  const reportFile = join(directory, 'report.json');
  const vitest = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${reportFile}`,
      ...args,
    ],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        TMPDIR: directory,
        // Hundreds of processes load the same code: the test files, the command line, the parts of services.
        NODE_COMPILE_CACHE: join(directory, 'compiled'),
      },
    },
  );
  for (const signal of INTERRUPTS) process.on(signal, () => vitest.kill(signal));
  const [code] = (await once(vitest, 'exit')) as [number | null];
  const report = await readReport(reportFile);
  if (report === undefined) {
    console.log('0 passed, 1 failed');
    return code || 1;
  }
  printSlowestFiles(report);
  const failed = failures(report);
  console.log(`${report.numPassedTests} passed, ${failed} failed`);
  return code || (failed > 0 ? 1 : 0);
}

async function readReport(file: string): Promise<Report | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Report;
  } catch (error) {
    console.error('svc: vitest left no report:', error);
    return undefined;
  }
}

/** The files that took longest, from which to make the suite faster. One file alone is not listed. */
function printSlowestFiles({ testResults }: Report): void {
  if (testResults.length < 2) return;
  const slowest = testResults
    .map(({ name, startTime, endTime }) => ({ name, seconds: (endTime - startTime) / 1000 }))
    .sort((a, b) => b.seconds - a.seconds)
    .slice(0, SLOWEST_FILES);
  console.log('slowest files:');
  for (const { name, seconds } of slowest) {
    console.log(`${seconds.toFixed(1).padStart(8)} s  ${relative(process.cwd(), name)}`);
  }
  console.log();
}

/** Failed tests, at least one when the run as a whole failed, and every test that did not run. */
function failures(report: Report): number {
  const notRun = report.numTotalTests - report.numPassedTests - report.numFailedTests;
  return Math.max(report.numFailedTests + notRun, report.success ? 0 : 1);
}
