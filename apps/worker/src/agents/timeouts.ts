/** How long the steps of a session may take, in ms. */
export interface AgentTimeouts {
  /** For the agent runtime to be configured. */
  readonly configureMs: number;
  /** For one connection to the runtime, with its handshake. */
  readonly dialMs: number;
  /** Without a connection for this long, the runtime is lost. */
  readonly linkLostMs: number;
  /** For the commit of a turn, with all its attempts. */
  readonly commitMs: number;
  /** For the guest to save at the end of the sandbox. */
  readonly saveMs: number;
  /** For everything that is brought home at the end of the sandbox. */
  readonly finishMs: number;
  /** For what a client does not read, before it is disconnected. */
  readonly slowConsumerMs: number;
}

export const AGENT_TIMEOUTS: AgentTimeouts = {
  configureMs: 60_000,
  dialMs: 5_000,
  linkLostMs: 60_000,
  commitMs: 60_000,
  saveMs: 10_000,
  finishMs: 30_000,
  slowConsumerMs: 5_000,
};
