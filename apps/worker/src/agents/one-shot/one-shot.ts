import type { AgentSetup } from '@svc/contract';
import type { Microvm } from '@svc/microvm';
import { settledWithin } from '@svc/service-kit/concurrency';
import type { WorkerLogger } from '../../logger.ts';
import type { SandboxAgent } from '../../sandbox/agent.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { AgentCredentials } from '../credentials.ts';
import type { AgentLink, AgentLinkHandler } from '../link/agent-link.ts';
import type { NumberedMessage } from '../link/guest-messages.ts';
import type { AgentLogs } from '../logs/agent-logs.ts';
import { copyAgentLog } from '../logs/copy-agent-log.ts';
import type { AgentTimeouts } from '../timeouts.ts';
import type { PersistedState } from './persisted-state.ts';

/** The exit code recorded for a runtime that became unreachable: that of a killed process. */
const LOST_EXIT_CODE = 137;

export interface OneShotOptions {
  readonly sandbox: Sandbox;
  readonly vm: Microvm;
  readonly link: AgentLink;
  readonly credentials: AgentCredentials;
  /** Undefined for an agent without a persistence endpoint. */
  readonly persisted: PersistedState | undefined;
  readonly logs: AgentLogs;
  readonly logger: WorkerLogger;
  readonly timeouts: Pick<AgentTimeouts, 'saveMs' | 'finishMs'>;
  readonly onFault: (error: unknown, what: string) => void;
}

/** An agent with one task and no clients: its sandbox's record holds its exit code, its log holds its output. */
export class OneShot implements SandboxAgent, AgentLinkHandler {
  readonly #options: OneShotOptions;
  #onSaved: () => void = () => undefined;
  #finishing: Promise<void> | undefined;

  constructor(options: OneShotOptions) {
    this.#options = options;
  }

  get credentials(): AgentCredentials {
    return this.#options.credentials;
  }

  get persisted(): PersistedState | undefined {
    return this.#options.persisted;
  }

  /** Configures the agent's runtime. Fails like {@link AgentLink.configure}. */
  start(setup: AgentSetup, signal: AbortSignal): Promise<void> {
    return this.#options.link.configure(setup, this, signal);
  }

  /** Reconnects to a runtime that an earlier worker configured. */
  reconnect(): void {
    this.#options.link.reconnect(this);
  }

  async receive(
    messages: readonly NumberedMessage[],
    acknowledge: (n: number) => void,
  ): Promise<void> {
    for (const message of messages) {
      if (message.type === 'state') {
        this.persisted?.save(message.conversation);
        this.#onSaved();
      }
      if (message.type === 'exited') await this.#noteExit(message.exitCode);
    }
    acknowledge(messages.at(-1)?.n ?? 0);
  }

  lost(): void {
    const { sandbox, onFault } = this.#options;
    if (!sandbox.isLive) return;
    this.#noteExit(LOST_EXIT_CODE).catch((error) => onFault(error, 'record the loss of an agent'));
  }

  async announce(): Promise<number> {
    return 0;
  }

  async updateConfig(): Promise<void> {
    // A one-shot agent has no bundle that could be rotated: its request carried its credentials.
  }

  async keepLog(): Promise<void> {
    const { vm, sandbox, logs, logger } = this.#options;
    await copyAgentLog(vm, sandbox.id, logs, logger);
  }

  beforePause(): Promise<void> {
    return this.keepLog();
  }

  finish(): Promise<void> {
    this.#finishing ??= this.#finish();
    return this.#finishing;
  }

  async dispose(): Promise<void> {
    await this.release();
  }

  async release(): Promise<void> {
    this.credentials.revoke();
    this.persisted?.close();
    await this.#options.link.close();
  }

  async #finish(): Promise<void> {
    const { vm, timeouts } = this.#options;
    const end = performance.now() + timeouts.finishMs;
    const left = () => Math.max(0, end - performance.now());
    const { persisted } = this;
    if (persisted !== undefined) {
      const saved = Promise.race([vm.exited, this.#save()]);
      await settledWithin(saved, Math.min(timeouts.saveMs, left()));
      await settledWithin(persisted.idle(), left());
    }
    await settledWithin(Promise.race([vm.exited, this.keepLog()]), left());
  }

  async #save(): Promise<void> {
    const { vm, link, timeouts } = this.#options;
    if (vm.paused) await vm.resume(AbortSignal.timeout(timeouts.saveMs));
    const saved = Promise.withResolvers<void>();
    this.#onSaved = saved.resolve;
    link.save();
    await saved.promise;
  }

  async #noteExit(exitCode: number): Promise<void> {
    const { sandbox, onFault } = this.#options;
    // First, because a caller that learns of the exit reads the log next.
    await this.keepLog();
    await sandbox
      .noteAgentExit(exitCode)
      .catch((error) => onFault(error, 'record the exit of an agent'));
  }
}
