import { type Tool, tool } from 'ai';
import type { z } from 'zod';
import type { ProcessContext } from '../../processes/index.ts';

/** What a tool says to the model. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
}

/** Something that the model can have done. */
export interface AgentTool {
  readonly name: string;
  /** As the SDK wants it: description and schema of the input. */
  readonly definition: Tool;
  /**
   * Does it. Rejects with the reason of `signal` when that aborts; every other failure is an outcome, or an error
   * whose message the model may read.
   */
  run(input: unknown, signal: AbortSignal): Promise<ToolOutcome>;
}

/** What tools work on. */
export type ToolContext = ProcessContext;

/** A tool with an input of this form. */
export function defineTool<S extends z.ZodType>(spec: {
  readonly name: string;
  readonly description: string;
  readonly input: S;
  run(input: z.infer<S>, signal: AbortSignal): Promise<ToolOutcome>;
}): AgentTool {
  return {
    name: spec.name,
    definition: tool({ description: spec.description, inputSchema: spec.input }),
    run: async (input, signal) => await spec.run(spec.input.parse(input), signal),
  };
}

export function done(text: string): ToolOutcome {
  return { text, isError: false };
}

export function failed(text: string): ToolOutcome {
  return { text, isError: true };
}
