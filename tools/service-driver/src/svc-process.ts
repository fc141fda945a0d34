import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { readServiceRecord, type ServiceRecord } from './service-record.ts';
import { until } from './until.ts';

const CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));
const SVC = 'apps/cli/bin/svc.js';
/** With the pinned Node the launcher runs the command line in its own process, whose id is then the service's. */
const NODE = 'node_modules/node/bin/node';
/** The first start on a machine builds the images. */
const READY_MS = 1_800_000;
const READY_POLL_MS = 25;
const COMMAND_MS = 180_000;
const STOP_MS = 180_000;

/** Environment and launcher of the command line. */
export interface SvcContext {
  readonly env: NodeJS.ProcessEnv;
  /** Program and arguments that run the command line, such as `nsenter` with a network namespace. */
  readonly launcher: readonly string[];
  /** Another checkout whose command line runs, in its version of svc. Default: this one. */
  readonly checkout?: string | undefined;
}

export interface SvcResult {
  /** Null when the command exceeded three minutes and was killed. */
  readonly exitCode: number | null;
  /** Standard output, then standard error. */
  readonly output: string;
}

/** Runs one command to completion. */
export async function runSvc(context: SvcContext, args: readonly string[]): Promise<SvcResult> {
  const [program, words] = commandOf(context, args);
  const child = spawn(program, words, { env: context.env, stdio: ['ignore', 'pipe', 'pipe'] });
  const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_MS);
  const [output, errors, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  clearTimeout(timer);
  return { exitCode, output: output + errors };
}

/** A long-running command, such as `svc up`, that reports its state in `service.json` of its data directory. */
export class SvcProcess {
  readonly #child: ChildProcess;
  readonly #dataDir: string;
  readonly #outputFile: string;

  private constructor(child: ChildProcess, dataDir: string, outputFile: string) {
    this.#child = child;
    this.#dataDir = dataDir;
    this.#outputFile = outputFile;
  }

  /** Starts the command. Its output is appended to `outputFile`. */
  static async spawn(
    context: SvcContext,
    args: readonly string[],
    { dataDir, outputFile }: { readonly dataDir: string; readonly outputFile: string },
  ): Promise<SvcProcess> {
    await using output = await open(outputFile, 'a');
    const [program, words] = commandOf(context, args);
    const child = spawn(program, words, {
      env: context.env,
      stdio: ['ignore', output.fd, output.fd],
    });
    return new SvcProcess(child, dataDir, outputFile);
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the process could not be started');
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resolves when the process reports that it is ready. @throws Error with its output when it ends instead */
  async ready(): Promise<ServiceRecord> {
    const ready = async () => {
      if (this.hasEnded) {
        const output = await readFile(this.#outputFile, 'utf8');
        throw new Error(`${this.#child.spawnargs.join(' ')} ended:\n${output}`);
      }
      const record = await readServiceRecord(this.#dataDir);
      return record?.state === 'ready' && record.process.pid === this.pid && record;
    };
    return until('the process is ready', ready, {
      deadlineMs: READY_MS,
      intervalMs: READY_POLL_MS,
    });
  }

  /** Sends a signal and resolves with the exit code; null when the signal ended the process. */
  async end(signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<number | null> {
    if (!this.hasEnded) {
      const ended = once(this.#child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
      this.#child.kill(signal);
      await ended;
    }
    return this.#child.exitCode;
  }

  /** Requests an orderly end without waiting for it. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }
}

function commandOf(
  { launcher, checkout = CHECKOUT }: SvcContext,
  args: readonly string[],
): [program: string, args: string[]] {
  const [node, svc] = [join(checkout, NODE), join(checkout, SVC)];
  const [program = node, ...rest] = [...launcher, node, svc, ...args];
  return [program, rest];
}
