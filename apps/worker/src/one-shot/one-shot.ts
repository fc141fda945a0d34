import { AgentSession, type AgentSessionParts } from '../sessions/agent-session.ts';
import type { PersistedState } from './persisted-state.ts';

/** The exit code recorded for a runtime that became unreachable: that of a killed process. */
const LOST_EXIT_CODE = 137;

export interface OneShotOptions {
  /** Undefined for an agent without a persistence endpoint. */
  readonly persisted: PersistedState | undefined;
  readonly onFault: (error: unknown, what: string) => void;
}

/**
 * The agent of a sandbox outside sessions: its sandbox's record holds its exit code, its log holds its output, and
 * clients may attach to it until it exits. With a task it is activity of its sandbox until then; without one, only
 * while it runs a task of a client.
 */
export class OneShot extends AgentSession {
  readonly #parts: AgentSessionParts;
  readonly #options: OneShotOptions;
  readonly #endActivity: () => void;

  constructor(parts: AgentSessionParts, options: OneShotOptions) {
    super(parts);
    this.#parts = parts;
    this.#options = options;
    const { sandbox, placed } = parts;
    const runs = placed.interactive !== true && !sandbox.agentHasExited;
    this.#endActivity = runs ? sandbox.activity.begin() : () => undefined;
    if (sandbox.agentHasExited) this.#endClients();
  }

  get persisted(): PersistedState | undefined {
    return this.#options.persisted;
  }

  /** Records that the agent has exited, and disconnects its clients. Never rejects. */
  async noteExit(exitCode: number): Promise<void> {
    const { log } = this.#parts;
    const { onFault } = this.#options;
    // First, because a caller that learns of the exit reads the log next.
    const isKept = await log.keep();
    await this.sandbox
      .noteAgentExit(exitCode)
      .catch((error) => onFault(error, 'record the exit of an agent'));
    this.#endActivity();
    this.#endClients();
    if (isKept) void log.send();
  }

  /** Records that the agent became unreachable. Never rejects. */
  async noteLoss(): Promise<void> {
    if (this.sandbox.isLive) await this.noteExit(LOST_EXIT_CODE);
  }

  async updateConfig(): Promise<void> {
    // A one-shot agent has no bundle that could be rotated: its request carried its credentials.
  }

  #endClients(): void {
    this.#parts.clients.finish(1000, 'agent exited');
  }
}
