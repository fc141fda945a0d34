/** Bounds of deictic. Tests shorten them; the service runs with {@link DEFAULT_OPTIONS}. */
export interface DeicticOptions {
  /** Calls of the model that one task may make, those of delegated work with them. */
  readonly turns: number;
  /** Tokens that one task may use, input and output together. */
  readonly tokens: number;
  /** How long an endpoint may be silent, before its answer and within it. */
  readonly silenceMs: number;
  /** Calls in all for one answer, the first included. */
  readonly attempts: number;
  /** Longest first pause before another attempt; doubles each time up to `maxPauseMs`. */
  readonly pauseMs: number;
  /** Longest pause, also when the endpoint asks for more. */
  readonly maxPauseMs: number;
  /** Context window of the model in tokens, where the table of known models is not to be asked. */
  readonly contextWindow?: number;
}

export const DEFAULT_OPTIONS: DeicticOptions = {
  turns: 50,
  tokens: 4_000_000,
  silenceMs: 120_000,
  attempts: 5,
  pauseMs: 1_000,
  maxPauseMs: 30_000,
};
