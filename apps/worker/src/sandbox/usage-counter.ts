/** Counts of what an agent used. */
export interface AgentUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly tool_calls: number;
}

/** Counts what the agent of one sandbox uses while this process runs; the metering adds what earlier processes counted. */
export class UsageCounter {
  #counts = { input_tokens: 0, output_tokens: 0, tool_calls: 0 };

  /** The counts so far. */
  get counts(): AgentUsage {
    return { ...this.#counts };
  }

  /** Adds the tokens of one request to the model. */
  addTokens(tokens: Pick<AgentUsage, 'input_tokens' | 'output_tokens'>): void {
    this.#counts.input_tokens += tokens.input_tokens;
    this.#counts.output_tokens += tokens.output_tokens;
  }

  addToolCall(): void {
    this.#counts.tool_calls += 1;
  }
}
