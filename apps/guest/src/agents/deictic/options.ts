import type { ToolMachine } from '../tools/template-tools.ts';

/** Limits of deictic. The service uses {@link DEFAULT_OPTIONS}; tests use smaller ones. */
export interface DeicticOptions {
  /** Model calls per task, including those of delegated work. */
  readonly turns: number;
  /** Tokens per task, input and output together. */
  readonly tokens: number;
  /** Longest silence of an endpoint, before and during its answer. */
  readonly silenceMs: number;
  /** Calls for one answer, including the first. */
  readonly attempts: number;
  /** Upper bound of the first pause between attempts; doubles each time up to `maxPauseMs`. */
  readonly pauseMs: number;
  /** Longest pause, even if the endpoint asks for more. */
  readonly maxPauseMs: number;
  /** Context window of the model in tokens. Default: that of the table of known models. */
  readonly contextWindow?: number;
  /** Default: this sandbox. */
  readonly machine?: ToolMachine;
}

export const DEFAULT_OPTIONS: DeicticOptions = {
  turns: 50,
  tokens: 4_000_000,
  silenceMs: 120_000,
  attempts: 5,
  pauseMs: 1_000,
  maxPauseMs: 30_000,
};
