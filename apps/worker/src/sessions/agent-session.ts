import {
  type Agent,
  type AgentSecrets,
  type AgentSetup,
  type ConfigUpdate,
  hasDesktop,
  type PlacedAgent,
  type ServiceFrame,
} from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import {
  type CleanupStep,
  openDeadline,
  runEveryStep,
  settledWithin,
} from '@svc/service-kit/concurrency';
import type { LogEnd } from '@svc/service-kit/log-tail';
import type { AgentCredentials } from '../agents/credentials.ts';
import type { AgentLink, AgentLinkHandler } from '../agents/link/agent-link.ts';
import type { LogCopy } from '../agents/logs/log-copy.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { AttachedClients, ClientSocket } from './clients/attached-clients.ts';
import type { SessionFiles } from './session-files.ts';
import type { TurnPipeline } from './turns/turn-pipeline.ts';
import type { TurnStore } from './turns/turn-store.ts';

const PAUSE_WAIT_MS = 5_000;
const LAST_COMMIT_MS = 5_000;

/** The parts that connect an agent in its guest to its clients. */
export interface AgentSessionParts {
  /** The UUID by which clients attach. */
  readonly id: string;
  /** Rises with every start under this id. */
  readonly generation: number;
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedAgent;
  readonly files: SessionFiles;
  readonly link: AgentLink;
  readonly clients: AttachedClients;
  /** Receives the guest's messages for the pipeline. */
  readonly handler: AgentLinkHandler;
  readonly pipeline: TurnPipeline;
  readonly turns: TurnStore;
  readonly credentials: AgentCredentials;
  readonly log: LogCopy;
  readonly finishMs: number;
  readonly restartCommitMs: number;
  /** Aborted when the agent is released; the parts hold the signal. */
  readonly closing: AbortController;
}

/** The agent of a sandbox, connected to any number of clients: that of a session, or a one-shot agent. */
export abstract class AgentSession implements SandboxAgent {
  readonly #parts: AgentSessionParts;
  #model: string;
  #finishing: Promise<void> | undefined;

  constructor(parts: AgentSessionParts) {
    this.#parts = parts;
    this.#model = parts.placed.model ?? '';
  }

  get id(): string {
    return this.#parts.id;
  }

  get generation(): number {
    return this.#parts.generation;
  }

  /** The kind of the agent. */
  get agent(): Agent {
    return this.#parts.placed.kind;
  }

  get isSession(): boolean {
    return this.#parts.placed.session !== undefined;
  }

  get sandbox(): Sandbox {
    return this.#parts.sandbox;
  }

  /** Whether its template has a desktop. */
  get hasDesktop(): boolean {
    return hasDesktop(this.sandbox.assignment.placement.template);
  }

  /** The number of attached clients. */
  get clients(): number {
    return this.#parts.clients.size;
  }

  /** Aborts when the agent is released. */
  get closed(): AbortSignal {
    return this.#parts.closing.signal;
  }

  /** Configures the agent's runtime. Fails like {@link AgentLink.configure}. */
  start(setup: AgentSetup, signal: AbortSignal): Promise<void> {
    const { link, handler } = this.#parts;
    return link.configure(setup, handler, signal);
  }

  /** Replaces the credentials at the gateway, and the model that clients are shown. */
  useSecrets(secrets: AgentSecrets): void {
    if (this.closed.aborted) return;
    this.#parts.credentials.use(secrets);
    this.#model = secrets.llm.model ?? this.#model;
  }

  /** Reconnects to a runtime that an earlier worker configured. */
  reconnect(): void {
    const { link, handler } = this.#parts;
    link.reconnect(handler);
  }

  /** Attaches a client: sends it `ready`, then the frames after `afterSeq` or only new ones. */
  attach(client: ClientSocket): void {
    const { clients, placed, pipeline } = this.#parts;
    const ready = {
      type: 'ready',
      ...(placed.wire_version === 1 ? {} : { agent: placed.kind }),
      model: this.#model,
      resumed: placed.session?.resumed ?? false,
      generation: this.generation,
    };
    clients.attach(client, ready, pipeline);
  }

  async announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number> {
    await this.#parts.pipeline.store([{ n: 0, frame }]);
    return this.clients;
  }

  abstract updateConfig(update: ConfigUpdate, signal: AbortSignal): Promise<void>;

  readLog(): Promise<LogEnd> {
    return this.#parts.log.read();
  }

  async beforePause(): Promise<void> {
    await this.#parts.log.keep();
    await settledWithin(this.#parts.turns.idle(), PAUSE_WAIT_MS);
  }

  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async dispose(): Promise<void> {
    const { files, turns } = this.#parts;
    await runEveryStep([
      ...this.#stopping(),
      { name: 'close the journal, to number no more frames', run: () => files.journal.close() },
      {
        name: 'commit what is left and close the files',
        run: async () => {
          const isDone = !this.sandbox.hasRun || (await turns.commitLast(LAST_COMMIT_MS));
          // Files with uncommitted frames stay on disk, to be committed later.
          return isDone ? files.remove() : files.close();
        },
      },
    ]);
  }

  async release(saving: AbortSignal): Promise<void> {
    const { files, turns, restartCommitMs } = this.#parts;
    await runEveryStep([
      {
        // First, because the commit of a turn that is in progress may still succeed.
        name: 'commit the frames so far',
        run: async () => {
          using deadline = openDeadline(saving, restartCommitMs);
          await turns.commitForRestart(deadline.signal);
        },
      },
      ...this.#stopping(),
      { name: 'close the files', run: () => files.close() },
    ]);
  }

  async #finish(): Promise<void> {
    const { log, pipeline, finishMs } = this.#parts;
    const end = performance.now() + finishMs;
    await pipeline.finish(finishMs);
    await log.finish(Math.max(0, end - performance.now()));
  }

  #stopping(): CleanupStep[] {
    const { closing, credentials, link, turns } = this.#parts;
    return [
      {
        name: 'stop the work of the agent',
        run: () => closing.abort(new Error('the agent is released')),
      },
      { name: 'revoke the credentials', run: () => credentials.revoke() },
      { name: 'close the link', run: () => link.close() },
      { name: 'wait for the commits', run: () => turns.idle() },
    ];
  }
}
