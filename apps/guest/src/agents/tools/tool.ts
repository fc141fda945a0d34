import { z } from 'zod';
import type { ProcessContext } from '../processes/index.ts';

/** A picture for the model. */
export interface ToolImage {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

/** The result of a tool, for the model. */
export interface ToolOutcome {
  readonly text: string;
  readonly isError: boolean;
  readonly image?: ToolImage;
}

/** A tool that the model can call. */
export interface AgentTool {
  readonly name: string;
  readonly description: string;
  /** Schema of the input. */
  readonly input: z.ZodType;
  /**
   * Runs the tool. Rejects with the reason of `signal` when it aborts. Every other failure is an outcome, or an error
   * with a message for the model.
   */
  run(input: unknown, signal: AbortSignal): Promise<ToolOutcome>;
}

/** The environment in which tools run. */
export type ToolContext = ProcessContext;

/** Defines a tool; its input is validated against `input`. */
export function defineTool<S extends z.ZodType>(spec: {
  readonly name: string;
  readonly description: string;
  readonly input: S;
  run(input: z.infer<S>, signal: AbortSignal): Promise<ToolOutcome>;
}): AgentTool {
  return {
    name: spec.name,
    description: spec.description,
    input: spec.input,
    run: async (input, signal) => await spec.run(spec.input.parse(input), signal),
  };
}

export function done(text: string): ToolOutcome {
  return { text, isError: false };
}

export function failed(text: string): ToolOutcome {
  return { text, isError: true };
}

/** The outcome for an error of a tool. */
export function outcomeOf(error: unknown): ToolOutcome {
  if (error instanceof z.ZodError) return failed(z.prettifyError(error));
  return failed(error instanceof Error ? error.message : String(error));
}

/** Result of a tool that was interrupted. */
export const INTERRUPTED_RESULT = 'Interrupted by the user.';
/** Longest result of a tool, in characters. */
export const MAX_RESULT_CHARS = 30_000;
