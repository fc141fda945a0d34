import type { Agent, FrameErrorCode } from '@svc/contract';
import type { Reply } from '@svc/model-server';
import type { AgentContext, AgentSession } from '../../src/agents/agent.ts';
import type { Deadlines } from '../../src/agents/vendor-cli/vendor-session.ts';
import type { Clis } from './install-clis.ts';

/** A call of a tool, as the scripted model makes it. */
export type ToolCall = NonNullable<Reply['tool_calls']>[number];

/** How the shared cases drive one vendor's CLI, and what they may expect of it. */
export interface CliDriver {
  readonly agent: Agent;
  readonly model: string;
  /** Path of the gateway, below the URL of the model server. */
  readonly gatewayPath: string;
  /** Method and path of its requests to the gateway: it makes no others. */
  readonly request: string;
  /** Variable that holds a key of the vendor's. */
  readonly keyVariable: string;
  /** Directory of its transcripts, below the home directory. */
  readonly transcripts: string;
  /** A conversation that it has no transcript of. */
  readonly unknownConversation: string;
  /** What it logs when it cannot go on with a conversation. */
  readonly startsAnew: string;
  /** Whether the result of an interrupted task is what the model had said by then. */
  readonly keepsInterruptedText: boolean;
  /** Code of an answer that broke off in the middle. */
  readonly cutCode: FrameErrorCode;

  /** The program among the CLIs of the image. */
  program(clis: Clis): string;
  /** Starts the agent with this program, and few retries. */
  open(context: AgentContext, binary: string, deadlines: Partial<Deadlines>): Promise<AgentSession>;
  /** How the model has it run a command. */
  shellCall(command: string): ToolCall;
  /** What the `tool_call` frame of a command says. */
  shellFrame(command: string, workingDirectory: string): Readonly<Record<string, unknown>>;
  /** What the `tool_result` frame of a command shows of its output. */
  shellResult(output: string): string;
}
