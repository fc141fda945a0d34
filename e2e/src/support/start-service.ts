import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Access } from './access.ts';
import { environment } from './environment.ts';
import {
  type CommandContext,
  hasEnded,
  runSvc,
  serviceReady,
  spawnService,
} from './service-process.ts';

const STOP_MS = 180_000;

export interface StartServiceOptions {
  /** Variables of the service, over those that tests set. */
  readonly env?: Readonly<Record<string, string>>;
  /** A data directory of the caller's, which stays; default: a fresh one that goes with the service. */
  readonly dataDir?: string;
  /** Program and arguments that run the command line. */
  readonly launcher?: readonly string[];
  /** Listen on every address of the machine instead of localhost only. */
  readonly listenEverywhere?: boolean;
}

/** A service of its own for one test file: the real command line on a data directory and ports of its own. */
export class Service extends Access implements AsyncDisposable {
  readonly dataDir: string;
  readonly #context: CommandContext;
  readonly #ownsDataDir: boolean;
  readonly #output: string;
  #child: ChildProcess | undefined;

  private constructor(places: Places, context: CommandContext, child: ChildProcess) {
    super(places);
    this.dataDir = places.dataDir;
    this.#output = places.output;
    this.#ownsDataDir = places.ownsDataDir;
    this.#context = context;
    this.#child = child;
  }

  /** Starts a service and resolves when it is ready. A start that fails leaves nothing. */
  static async start(options: StartServiceOptions = {}): Promise<Service> {
    const ownsDataDir = options.dataDir === undefined;
    const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'svc-e2e-')));
    const output = join(dataDir, 'e2e-output.log');
    const context = {
      env: await environment(dataDir, options),
      launcher: options.launcher ?? [],
    };
    const child = await spawnService(context, output);
    try {
      const record = await serviceReady(child, dataDir, output);
      const places = { baseUrl: record.base_url, caFile: record.ca_file, dataDir };
      return new Service({ ...places, output, ownsDataDir }, context, child);
    } catch (error) {
      await endAndClean(child, context);
      if (ownsDataDir) await rm(dataDir, { recursive: true, force: true });
      throw error;
    }
  }

  /** Process id of the service. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('the service does not run');
    return pid;
  }

  /** Starts the service again on the same data directory and ports, with further variables if wished. */
  async startAgain(env: Readonly<Record<string, string>> = {}): Promise<void> {
    if (this.#child !== undefined && !hasEnded(this.#child)) throw new Error('it still runs');
    Object.assign(this.#context.env, env);
    this.#child = await spawnService(this.#context, this.#output);
    await serviceReady(this.#child, this.dataDir, this.#output);
  }

  /** Ends the service in order: SIGTERM. Resolves with its exit code. */
  async stop(): Promise<number | null> {
    return this.#end('SIGTERM');
  }

  /** Ends the service as a crash would. Its sandboxes live on. */
  async kill9(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Runs the command line on this service's data directory. */
  async svc(...args: string[]): Promise<{ exitCode: number | null; output: string }> {
    return runSvc(this.#context, args);
  }

  /** What the service printed, over all its starts. */
  async output(): Promise<string> {
    return readFile(this.#output, 'utf8');
  }

  /** What the service logged. */
  async log(): Promise<string> {
    return readFile(join(this.dataDir, 'service.log'), 'utf8');
  }

  /** Ends the service, all that it left, and a data directory that was made for it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await endAndClean(this.#child, this.#context);
    await this.#keepLog();
    if (this.#ownsDataDir) await rm(this.dataDir, { recursive: true, force: true });
  }

  /** Where `E2E_LOG_DIR` names a directory, the log outlives the data directory. */
  async #keepLog(): Promise<void> {
    const directory = process.env.E2E_LOG_DIR;
    if (directory === undefined) return;
    await copyFile(
      join(this.dataDir, 'service.log'),
      join(directory, `${basename(this.dataDir)}.log`),
    );
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child === undefined) return null;
    return end(this.#child, signal);
  }
}

interface Places {
  readonly baseUrl: string;
  readonly caFile: string;
  readonly dataDir: string;
  readonly output: string;
  readonly ownsDataDir: boolean;
}

/** Starts the real service for a test: see {@link Service}. */
export async function startService(options?: StartServiceOptions): Promise<Service> {
  return Service.start(options);
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (!hasEnded(child)) {
    const ended = once(child, 'exit', { signal: AbortSignal.timeout(STOP_MS) });
    child.kill(signal);
    await ended;
  }
  return child.exitCode;
}

async function endAndClean(
  child: ChildProcess | undefined,
  context: CommandContext,
): Promise<void> {
  if (child !== undefined) {
    await end(child, 'SIGTERM').catch(() => end(child, 'SIGKILL'));
  }
  const { exitCode, output } = await runSvc(context, ['down']);
  if (exitCode !== 0) console.error(`svc down ended with ${exitCode}:\n${output}`);
}
