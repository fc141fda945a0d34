import type { Agent, FrameErrorCode } from '@svc/contract';
import type { Reply } from '@svc/model-server';
import type { AgentContext, AgentSession } from '../../src/agents/agent.ts';
import type { ToolMachine } from '../../src/agents/tools/template-tools.ts';
import type { Deadlines } from '../../src/agents/vendor-cli/vendor-session.ts';
import type { Clis } from './install-clis.ts';

/** A tool call, as made by the scripted model. */
export type ToolCall = NonNullable<Reply['tool_calls']>[number];

/** How the shared tests drive one vendor's CLI, and the behaviour they expect. */
export interface CliDriver {
  readonly agent: Agent;
  readonly model: string;
  /** Another model that it accepts. */
  readonly otherModel: string;
  /** Path of the gateway, below the URL of the model server. */
  readonly gatewayPath: string;
  /** Method and path of its only request to the gateway. */
  readonly request: string;
  /** Environment variable for the vendor's key. */
  readonly keyVariable: string;
  /** Directory of its transcripts, relative to the home directory. */
  readonly transcripts: string;
  /** A conversation without a transcript. */
  readonly unknownConversation: string;
  /** Part of the log message when it cannot resume a conversation. */
  readonly startsAnew: string;
  /** Whether the result of an interrupted task is the text so far. */
  readonly keepsInterruptedText: boolean;
  /** Error code of an answer that is cut off. */
  readonly cutCode: FrameErrorCode;

  /** Its program among those of the image. */
  program(clis: Clis): string;
  /** Starts the agent with a program and few retries, as in a template that has what `machine` names. */
  open(
    context: AgentContext,
    parts: { readonly binary: string; readonly machine: ToolMachine },
    deadlines: Partial<Deadlines>,
  ): Promise<AgentSession>;
  /** The model's tool call that runs a command. */
  shellCall(command: string): ToolCall;
  /** The model's call of a tool of the template. */
  toolCall(name: string, input: object): ToolCall;
  /** The expected `tool_call` frame of a command. */
  shellFrame(command: string, workingDirectory: string): Readonly<Record<string, unknown>>;
  /** The expected content of the `tool_result` frame of a command. */
  shellResult(output: string): string;
}
