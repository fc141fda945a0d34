import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentSetup } from '@svc/contract';
import type { RuntimeOptions } from '../runtime/index.ts';
import { type Runtime, startRuntime } from '../runtime/index.ts';
import { ScriptedAgent } from './scripted-agent.ts';
import { WorkerLine } from './worker-line.ts';

export const TOKEN = 'the token of the line';

export const SETUP: AgentSetup = {
  mode: 'session',
  agent: 'deictic',
  model: 'model-1',
  dialect: 'anthropic',
  gateway: 'http://127.0.0.1:1/anthropic',
  wireVersion: 2,
  env: { GREETING: 'hello' },
  restoreFiles: false,
};

/** A runtime in a directory of its own, with a scripted agent, for tests. */
export class RunningRuntime {
  readonly agent = new ScriptedAgent();
  readonly directory: string;
  readonly options: RuntimeOptions;
  readonly #runtime: Runtime;
  readonly #lines: WorkerLine[] = [];

  private constructor(
    directory: string,
    options: RuntimeOptions,
    runtime: Runtime,
    agent: ScriptedAgent,
  ) {
    this.directory = directory;
    this.options = options;
    this.#runtime = runtime;
    this.agent = agent;
  }

  static async start(change: Partial<RuntimeOptions> = {}): Promise<RunningRuntime> {
    const directory = await mkdtemp(join(tmpdir(), 'svc-guest-'));
    const agent = new ScriptedAgent();
    const options: RuntimeOptions = {
      listen: { host: '127.0.0.1', port: 0 },
      home: join(directory, 'home'),
      logPath: join(directory, 'log/agent.log'),
      restoreArchive: join(directory, 'state/restore.tar'),
      savedArchive: join(directory, 'state/saved.tar'),
      loadAgent: async () => agent.start,
      ...change,
    };
    await mkdir(options.home);
    return new RunningRuntime(directory, options, await startRuntime(options), agent);
  }

  get home(): string {
    return this.options.home;
  }

  async line(): Promise<WorkerLine> {
    const line = await WorkerLine.open(this.#runtime.port);
    this.#lines.push(line);
    return line;
  }

  /** A line over which the runtime has been configured. */
  async configured(setup: Partial<AgentSetup> = {}): Promise<WorkerLine> {
    const line = await this.line();
    line.say({ type: 'configure', token: TOKEN, setup: { ...SETUP, ...setup } });
    await line.hear('configured');
    return line;
  }

  /** A line that has come back. */
  async attached(after: number): Promise<WorkerLine> {
    const line = await this.line();
    line.say({ type: 'attach', token: TOKEN, after });
    await line.hear('attached');
    return line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const line of this.#lines) line.close();
    await this.#runtime.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
