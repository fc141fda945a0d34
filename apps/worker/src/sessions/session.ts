import type { Agent, AgentSecrets, AgentSetup, PlacedAgent, ServiceFrame } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, settledWithin } from '@svc/service-kit/concurrency';
import type { AgentCredentials } from '../agents/credentials.ts';
import type { AgentLink } from '../agents/link/agent-link.ts';
import type { AgentLogs } from '../agents/logs/agent-logs.ts';
import { copyAgentLog } from '../agents/logs/copy-agent-log.ts';
import { environmentOf } from '../agents/setup.ts';
import type { SessionApi } from '../control-plane/session-api.ts';
import type { WorkerLogger } from '../logger.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AttachedClients, ClientSocket } from './clients/attached-clients.ts';
import type { SessionFiles } from './session-files.ts';
import type { TurnCommits } from './turns/turn-commits.ts';
import type { TurnPipeline } from './turns/turn-pipeline.ts';

const PAUSE_WAIT_MS = 5_000;

/** An agent that belongs to a session. */
export type PlacedSession = PlacedAgent & {
  readonly session: NonNullable<PlacedAgent['session']>;
};

export interface SessionOptions {
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedSession;
  readonly files: SessionFiles;
  readonly link: AgentLink;
  readonly clients: AttachedClients;
  readonly pipeline: TurnPipeline;
  readonly commits: TurnCommits;
  readonly credentials: AgentCredentials;
  readonly api: Pick<SessionApi, 'agentSecrets'>;
  readonly logs: AgentLogs;
  readonly logger: WorkerLogger;
  readonly finishMs: number;
  /** Aborted when the session closes; its parts hold the signal. */
  readonly closing: AbortController;
}

/** One start of a session, which connects the agent in its guest to any number of clients. */
export class Session implements SandboxAgent {
  readonly #options: SessionOptions;
  readonly #configuring = new Mutex();
  #finishing: Promise<void> | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.placed.session.chat_session_id;
  }

  /** Rises with every start of the session. */
  get generation(): number {
    return this.#options.placed.session.generation;
  }

  /** The kind of its agent. */
  get agent(): Agent {
    return this.#options.placed.kind;
  }

  get sandbox(): Sandbox {
    return this.#options.sandbox;
  }

  /** The number of attached clients. */
  get clients(): number {
    return this.#options.clients.size;
  }

  /** Aborts when the session closes. */
  get closed(): AbortSignal {
    return this.#options.closing.signal;
  }

  /** Configures the agent's runtime. Fails like {@link AgentLink.configure}. */
  start(setup: AgentSetup, signal: AbortSignal): Promise<void> {
    const { link, pipeline } = this.#options;
    return link.configure(setup, pipeline, signal);
  }

  /** Reconnects to a runtime that an earlier worker configured. */
  reconnect(): void {
    const { link, pipeline } = this.#options;
    link.reconnect(pipeline);
  }

  /** Attaches a client: sends it `ready`, then the frames after `afterSeq` or only new ones. */
  attach(client: ClientSocket): void {
    const { clients, placed, pipeline } = this.#options;
    const ready = {
      type: 'ready',
      agent: placed.kind,
      model: placed.model ?? '',
      resumed: placed.session.resumed,
    };
    clients.attach(client, ready, pipeline);
  }

  async announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number> {
    await this.#options.pipeline.store([{ n: 0, frame }]);
    return this.clients;
  }

  updateConfig(keys: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#configuring.run(async () => {
      await this.refreshSecrets(signal);
      await this.announce({ type: 'system', event: 'config_update', keys: [...keys] });
    });
  }

  /** Fetches the agent's secrets again, and replaces those in use. @throws ControlPlaneError */
  async refreshSecrets(signal: AbortSignal): Promise<void> {
    const { api, link } = this.#options;
    const secrets = await api.agentSecrets(this.sandbox.id, signal);
    this.useSecrets(secrets);
    if (!this.closed.aborted) link.setEnv(environmentOf(secrets, {}));
  }

  /** Replaces the credentials at the gateway. */
  useSecrets(secrets: AgentSecrets): void {
    if (!this.closed.aborted) this.#options.credentials.use(secrets);
  }

  async keepLog(): Promise<void> {
    const { vm, logs, logger } = this.#options;
    await copyAgentLog(vm, this.sandbox.id, logs, logger);
  }

  async beforePause(): Promise<void> {
    await this.keepLog();
    await settledWithin(this.#options.commits.idle(), PAUSE_WAIT_MS);
  }

  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async dispose(): Promise<void> {
    const { files, commits } = this.#options;
    await this.#stop();
    // Files with uncommitted frames stay on disk, to be committed later.
    if (this.sandbox.hasRun && commits.isDirty) await files.close();
    else await files.remove();
  }

  async release(): Promise<void> {
    await this.#stop();
    await this.#options.files.close();
  }

  async #finish(): Promise<void> {
    const { vm, pipeline, finishMs } = this.#options;
    const end = performance.now() + finishMs;
    await pipeline.finish(finishMs);
    const left = Math.max(0, end - performance.now());
    await settledWithin(Promise.race([vm.exited, this.keepLog()]), left);
  }

  async #stop(): Promise<void> {
    const { closing, credentials, link, commits } = this.#options;
    closing.abort(new Error('the session is closed'));
    credentials.revoke();
    await link.close();
    await commits.idle();
  }
}
