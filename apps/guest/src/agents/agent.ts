/** The interface between the runtime and an agent. */

import type { AgentFrame, AgentSetup } from '@svc/contract';

/** The services that an agent receives when it starts. */
export interface AgentContext {
  readonly setup: AgentSetup;
  /** Sends a frame to the session. An agent that sends many must wait for {@link drained} now and then. */
  emit(frame: AgentFrame): void;
  /** Settles when the link to the worker accepts more frames. */
  drained(): Promise<void>;
  /** The environment for processes that start now. A rotation changes it. */
  env(): Record<string, string>;
  /** Appends to the log served by `GET …/logs`. */
  log(text: string): void;
  /** The agent's home directory, which a resume restores. */
  readonly home: string;
  /** The directory in which the agent's tools and commands run. */
  readonly workingDirectory: string;
  /** Aborts when the runtime ends. */
  readonly signal: AbortSignal;
}

/** How a task ended. `result` is the agent's final message. */
export interface TaskOutcome {
  readonly status: 'completed' | 'failed' | 'interrupted';
  readonly result: string;
}

export interface AgentTask {
  readonly prompt: string;
  readonly id?: string | undefined;
}

/** A running agent and its conversation. */
export interface AgentSession {
  /**
   * Runs one task to completion; an abort of `signal` interrupts it. Emits every frame but `task_started` and
   * `task_completed`; emits an `error` frame before it returns `failed`. Never rejects for a failure of a model, a tool
   * or the conversation.
   */
  runTask(task: AgentTask, signal: AbortSignal): Promise<TaskOutcome>;
  /** The agent's own record of the conversation: opaque text that is returned as `setup.conversation`. */
  conversation(): string;
  /** Ends every process that belongs to the agent. */
  close(): Promise<void>;
}

/** Starts an agent, which continues `setup.conversation` if there is one. */
export type StartAgent = (context: AgentContext) => Promise<AgentSession>;
