import { randomBytes } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { type Job, parseArguments, USAGE, UsageError } from './arguments.ts';
import { describeError } from './describe-error.ts';

/** What a rendering thread reports: the picture, or why there is none. */
export type Outcome = { readonly picture: Uint8Array } | { readonly failure: string };

/** The exit codes of `canvas-render`. */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/**
 * Runs `canvas-render` with these arguments and answers its exit code. The program runs in a thread started from
 * `threadFile`, so that a program that never ends can be stopped.
 */
export async function runCommand(args: readonly string[], threadFile: string): Promise<number> {
  let job: Job | undefined;
  try {
    job = parseArguments(args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`canvas-render: ${error.message}\n\n${USAGE}`);
    return EXIT.usage;
  }
  if (job === undefined) {
    process.stdout.write(USAGE);
    return EXIT.done;
  }
  const outcome = await render(job, threadFile);
  if ('failure' in outcome) return fail(outcome.failure);
  try {
    await writeWhole(job.output, outcome.picture);
  } catch (error) {
    return fail(`cannot write ${job.output}: ${describeError(error)}`);
  }
  return EXIT.done;
}

function fail(message: string): number {
  process.stderr.write(`canvas-render: ${message}\n`);
  return EXIT.failed;
}

async function render(job: Job, threadFile: string): Promise<Outcome> {
  const thread = new Worker(threadFile, { workerData: job });
  const outcome = Promise.withResolvers<Outcome>();
  const timer = setTimeout(() => {
    outcome.resolve({ failure: `${job.input} was not drawn within ${job.timeout} s` });
  }, job.timeout * 1000);
  thread.once('message', (message: Outcome) => outcome.resolve(message));
  thread.once('error', (error) => outcome.resolve({ failure: describeError(error, job.input) }));
  thread.once('exit', () =>
    outcome.resolve({ failure: `${job.input} ended its process before it was drawn` }),
  );
  try {
    return await outcome.promise;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}

/** Writes a file so that it appears complete or not at all. */
async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const name = `.${basename(path)}.${randomBytes(6).toString('hex')}`;
  const temporary = join(dirname(path), name);
  try {
    await writeFile(temporary, bytes, { flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
