import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EnvironmentOptions, serviceEnvironment } from './environment.ts';
import { runSvc, type SvcContext, type SvcResult } from './svc-process.ts';

/** A service started in the background by `svc up --detach`. */
export class DetachedService implements AsyncDisposable {
  readonly dataDir: string;
  /** Output of the start command. */
  readonly startOutput: string;
  readonly #context: SvcContext;

  private constructor(dataDir: string, startOutput: string, context: SvcContext) {
    this.dataDir = dataDir;
    this.startOutput = startOutput;
    this.#context = context;
  }

  /** Starts a service on a temporary data directory and free ports. A failed start leaves nothing behind. */
  static async start(options: EnvironmentOptions = {}): Promise<DetachedService> {
    const dataDir = await mkdtemp(join(tmpdir(), 'svc-detached-'));
    const context = { env: await serviceEnvironment(dataDir, options), launcher: [] };
    const { exitCode, output } = await runSvc(context, ['up', '--detach']);
    const service = new DetachedService(dataDir, output, context);
    if (exitCode === 0) return service;
    await service[Symbol.asyncDispose]();
    throw new Error(`the service did not start:\n${output}`);
  }

  /** Runs a command of the command line with the service's environment. */
  async svc(...args: string[]): Promise<SvcResult> {
    return runSvc(this.#context, args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.svc('down');
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
