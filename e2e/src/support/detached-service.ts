import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment } from './environment.ts';
import { type CommandContext, runSvc } from './service-process.ts';

/** A service started by `svc up --detach`, as a person starts it. */
export class DetachedService implements AsyncDisposable {
  readonly dataDir: string;
  /** What the start printed. */
  readonly startOutput: string;
  readonly #context: CommandContext;

  private constructor(dataDir: string, startOutput: string, context: CommandContext) {
    this.dataDir = dataDir;
    this.startOutput = startOutput;
    this.#context = context;
  }

  /** Starts one on a fresh data directory and free ports. A start that fails leaves nothing. */
  static async start(): Promise<DetachedService> {
    const dataDir = await mkdtemp(join(tmpdir(), 'svc-e2e-'));
    const context = { env: await environment(dataDir), launcher: [] };
    const { exitCode, output } = await runSvc(context, ['up', '--detach']);
    const service = new DetachedService(dataDir, output, context);
    if (exitCode === 0) return service;
    await service[Symbol.asyncDispose]();
    throw new Error(`the service did not start:\n${output}`);
  }

  /** Runs the command line for this service. */
  async svc(...args: string[]): Promise<{ exitCode: number | null; output: string }> {
    return runSvc(this.#context, args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.svc('down');
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
