import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentSetup } from '@svc/contract';
import type { RuntimeOptions } from '../src/runtime/index.ts';
import { type Runtime, startRuntime } from '../src/runtime/index.ts';
import { ScriptedAgent } from './scripted-agent.ts';
import { WorkerConnection } from './worker-connection.ts';

export const TOKEN = 'the token of the link';

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

/** A runtime with a scripted agent, in a temporary directory. */
export class RunningRuntime {
  readonly agent = new ScriptedAgent();
  readonly directory: string;
  readonly options: RuntimeOptions;
  readonly #runtime: Runtime;
  readonly #connections: WorkerConnection[] = [];

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

  async connect(): Promise<WorkerConnection> {
    const connection = await WorkerConnection.open(this.#runtime.port);
    this.#connections.push(connection);
    return connection;
  }

  /** A connection that has configured the runtime. */
  async configured(setup: Partial<AgentSetup> = {}): Promise<WorkerConnection> {
    const worker = await this.connect();
    worker.send({ type: 'configure', token: TOKEN, setup: { ...SETUP, ...setup } });
    await worker.waitFor('configured');
    return worker;
  }

  /** A reconnection, with every message up to `after` acknowledged. */
  async attached(after: number): Promise<WorkerConnection> {
    const worker = await this.connect();
    worker.send({ type: 'attach', token: TOKEN, after });
    await worker.waitFor('attached');
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#runtime.close();
    await rm(this.directory, { recursive: true, force: true });
  }
}
