import type { Duplex } from 'node:stream';
import type { Agent, AgentSecrets, PlacedAgent, ServiceFrame } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { Mutex, settledWithin } from '@svc/service-kit/concurrency';
import type { WebSocket } from 'ws';
import { AgentAccess, environmentOf } from '../agents/access.ts';
import { AgentLink } from '../agents/link/agent-link.ts';
import type { ForwardedFrame, Outbox } from '../agents/link/outbox.ts';
import { keepLog } from '../agents/logs/keep-log.ts';
import type { LlmUsage } from '../gateway/index.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { FrameStream } from './frame-stream.ts';
import { GuestOutput } from './guest-output.ts';
import type { Journal } from './journal/journal.ts';
import type { AgentServices } from './services.ts';
import { Committer } from './turns/committer.ts';
import { TurnSaver } from './turns/turn-saver.ts';

const PAUSE_WAIT_MS = 5_000;

export interface SessionOptions {
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly placed: PlacedAgent;
  readonly session: NonNullable<PlacedAgent['session']>;
  readonly token: string;
  readonly journal: Journal;
  readonly outbox: Outbox;
  readonly services: AgentServices;
  /** Gives the journal's name back. */
  readonly unclaim: () => void;
}

/**
 * One start of a session: the agent in its guest on one side, any number of clients on the other. What the agent
 * says is kept before it is shown, and a finished turn is the control plane's before clients learn of it.
 */
export class Session implements SandboxAgent {
  /** The way to its agent; brought up by who makes the session. */
  readonly line: AgentLink;
  readonly #options: SessionOptions;
  readonly #access: AgentAccess;
  readonly #frames: FrameStream;
  readonly #turns: TurnSaver;
  readonly #output: GuestOutput;
  readonly #commits: Committer;
  readonly #configuring = new Mutex();
  readonly #closed = new AbortController();
  #finishing: Promise<void> | undefined;

  constructor(options: SessionOptions) {
    const { sandbox, vm, placed, session, journal, outbox, services, token } = options;
    const { chat_session_id: sessionId, generation } = session;
    const { signal: closed } = this.#closed;
    this.#options = options;
    this.#access = new AgentAccess({
      accounts: services.accounts,
      address: vm.host,
      vmId: sandbox.id,
      vendor: placed.vendor,
      onUsage: (usage) => this.#noteUsage(usage),
    });
    this.#commits = new Committer({
      api: services.api,
      journal,
      sessionId,
      generation,
      vmId: sandbox.id,
      commitMs: services.times.commitMs,
    });
    this.#turns = new TurnSaver({
      vm,
      owner: { sessionId, generation },
      commits: this.#commits,
      services,
      closed,
      askToSave: () => this.line.save(),
      onNotSaved: () => this.#frames.error('state_not_saved'),
      onStale: () => this.#end('worker_lost'),
    });
    this.#frames = new FrameStream({
      agent: placed.kind,
      sandbox,
      journal,
      services,
      closed,
      forward: (frame) => this.#forward(frame),
      onTaskShown: () => this.#turns.trail(),
    });
    this.#output = new GuestOutput({
      frames: this.#frames,
      turns: this.#turns,
      wireVersion: placed.wire_version,
    });
    this.line = new AgentLink({
      dial: (signal) => vm.dialAgent(signal),
      token,
      lastN: journal.lastN,
      outbox,
      services,
      onMessages: (messages, done) => this.#output.take(messages, done),
      isAwake: () => !vm.paused,
      onLost: () => this.#onLost(),
    });
  }

  get id(): string {
    return this.#options.session.chat_session_id;
  }

  /** Of its start: a later one has a higher number. */
  get generation(): number {
    return this.#options.session.generation;
  }

  /** The kind of its agent. */
  get agent(): Agent {
    return this.#options.placed.kind;
  }

  get sandbox(): Sandbox {
    return this.#options.sandbox;
  }

  /** How many clients are attached. */
  get clients(): number {
    return this.#frames.clients;
  }

  /** Takes a client in: it gets `ready`, then everything after `afterSeq`, or only what comes from now on. */
  attach(client: {
    readonly ws: WebSocket;
    readonly socket: Duplex;
    readonly afterSeq?: number;
  }): void {
    const { placed, session } = this.#options;
    this.#frames.attach(client, {
      type: 'ready',
      agent: placed.kind,
      model: placed.model ?? '',
      resumed: session.resumed,
    });
  }

  async announce(frame: Extract<ServiceFrame, { type: 'system' }>): Promise<number> {
    await this.#frames.keep([{ n: 0, frame }]);
    return this.clients;
  }

  updateConfig(keys: readonly string[], signal: AbortSignal): Promise<void> {
    return this.#configuring.run(async () => {
      await this.refreshSecrets(signal);
      await this.announce({ type: 'system', event: 'config_update', keys: [...keys] });
    });
  }

  /** Fetches the credentials anew and takes them into use. @throws ControlPlaneError */
  async refreshSecrets(signal: AbortSignal): Promise<void> {
    const secrets = await this.#options.services.api.agentSecrets(this.sandbox.id, signal);
    this.useSecrets(secrets);
    if (!this.#closed.signal.aborted) this.line.setEnv(environmentOf(secrets, {}));
  }

  /** Takes credentials into use at the gateway. */
  useSecrets(secrets: AgentSecrets): void {
    if (!this.#closed.signal.aborted) this.#access.take(secrets);
  }

  async keepLog(): Promise<void> {
    const { vm, services } = this.#options;
    await keepLog(vm, this.sandbox.id, services.logs).catch((error) =>
      services.logger.debug({ err: error }, 'cannot copy an agent log'),
    );
  }

  async beforePause(): Promise<void> {
    await this.keepLog();
    await settledWithin(this.#turns.idle(), PAUSE_WAIT_MS);
  }

  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async dispose(): Promise<void> {
    const { journal, unclaim } = this.#options;
    await this.#close();
    // What the control plane does not have yet stays on disk, to be handed over later.
    const isNeeded = this.sandbox.hasRun && this.#commits.isDirty && !this.#turns.isStale;
    if (!isNeeded) await journal.remove();
    unclaim();
  }

  async release(): Promise<void> {
    await this.#close();
    this.#options.unclaim();
  }

  async #finish(): Promise<void> {
    const { finishMs } = this.#options.services.times;
    const end = performance.now() + finishMs;
    await this.#turns.finish(finishMs);
    const { exited } = this.#options.vm;
    const left = Math.max(0, end - performance.now());
    await settledWithin(Promise.race([exited, this.keepLog()]), left);
  }

  async #close(): Promise<void> {
    const { journal, outbox, services } = this.#options;
    services.sessions.remove(this);
    this.#closed.abort(new Error('the session is over'));
    this.#access.withdraw();
    await this.line.close();
    await this.#turns.idle();
    await outbox.close();
    await journal.close();
  }

  async #forward(frame: ForwardedFrame): Promise<boolean> {
    if (this.#closed.signal.aborted) return false;
    if (frame.type === 'task' || frame.type === 'exec') this.#output.refill();
    return this.line.forward(frame);
  }

  #noteUsage(usage: LlmUsage): void {
    if (this.#closed.signal.aborted) return;
    this.#frames
      .keep([{ n: 0, frame: { type: 'usage', ...usage } }])
      .catch((error) => this.#fault(error, 'keep the usage of a session'));
  }

  #onLost(): void {
    this.#frames
      .error('agent_failed')
      .then(() => this.#end('agent_exited'))
      .catch((error) => this.#fault(error, 'end a session whose agent is lost'));
  }

  #end(reason: 'agent_exited' | 'worker_lost'): void {
    this.sandbox.end(reason).catch((error) => this.#fault(error, 'end the sandbox of a session'));
  }

  #fault(error: unknown, what: string): void {
    if (!this.#closed.signal.aborted) this.#options.services.onFault(error, what);
  }
}
