/**
 * `canvas-render`: draws an HTML canvas program and writes the picture. See docs/canvas.md. The same file is the
 * process, which owns the deadline and the output file, and the thread that runs the program.
 */

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { Job } from './arguments.ts';
import { type Outcome, runCommand } from './command.ts';
import { describeError } from './describe-error.ts';

async function main(): Promise<void> {
  if (isMainThread || parentPort === null) {
    const [, file = '', ...args] = process.argv;
    process.exitCode = await runCommand(args, file);
    return;
  }
  const { render } = await import('./render.ts');
  const job = workerData as Job;
  const outcome = await outcomeOf(render(job), job);
  // What the program printed would be lost with the thread.
  await Promise.all([process.stdout, process.stderr].map(flush));
  parentPort.postMessage(outcome);
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}

async function outcomeOf(picture: Promise<Uint8Array>, { input }: Job): Promise<Outcome> {
  try {
    return { picture: await picture };
  } catch (error) {
    return { failure: describeError(error, input) };
  }
}

void main();
