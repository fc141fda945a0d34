/** Timeouts for agents and their sessions, in ms. */
export interface AgentTimeouts {
  /** For configuring the agent runtime. */
  readonly configureMs: number;
  /** For one connection to the runtime, including its handshake. */
  readonly dialMs: number;
  /** A runtime that stays unreachable for this long is lost. */
  readonly linkLostMs: number;
  /** For committing a turn, over all attempts. */
  readonly commitMs: number;
  /** For the guest to save its state when the sandbox ends. */
  readonly saveMs: number;
  /** For committing the frames of a session when the worker stops and keeps the sandbox. */
  readonly restartCommitMs: number;
  /** For everything that is saved when the sandbox ends, the guest's state included. */
  readonly finishMs: number;
  /** For a client to read the sent data; a slower one is disconnected. */
  readonly slowConsumerMs: number;
}

export const AGENT_TIMEOUTS: AgentTimeouts = {
  configureMs: 60_000,
  dialMs: 5_000,
  linkLostMs: 60_000,
  commitMs: 90_000,
  saveMs: 10_000,
  restartCommitMs: 3_000,
  finishMs: 30_000,
  slowConsumerMs: 5_000,
};
