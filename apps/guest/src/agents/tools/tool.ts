import { type Tool, tool } from 'ai';
import type { z } from 'zod';
import type { ProcessContext } from '../../processes/index.ts';

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
  /** Description and input schema, in the SDK's format. */
  readonly definition: Tool;
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
