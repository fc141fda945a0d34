/** What the runtime asks of an agent, and what it gives it. */

import type { AgentFrame, AgentSetup } from '@svc/contract';

/** What an agent is given when it starts. */
export interface AgentContext {
  readonly setup: AgentSetup;
  /** Gives a frame to the session. An agent that makes many waits for {@link drained} now and then. */
  emit(frame: AgentFrame): void;
  /** Settles when the line to the worker has room again. */
  drained(): Promise<void>;
  /** Environment for processes that start now; other values after a rotation. */
  env(): Record<string, string>;
  /** Appends to the log that `GET …/logs` shows. */
  log(text: string): void;
  /** The agent's home directory: a resume brings it back. */
  readonly home: string;
  /** Where the agent's tools and commands run. */
  readonly workingDirectory: string;
  /** Aborts when the runtime ends. */
  readonly signal: AbortSignal;
}

/** How a task ended. `result` is the agent's last words. */
export interface TaskOutcome {
  readonly status: 'completed' | 'failed' | 'interrupted';
  readonly result: string;
}

export interface AgentTask {
  readonly prompt: string;
  readonly id?: string | undefined;
}

/** An agent in conversation. */
export interface AgentSession {
  /**
   * Runs one task to its end; an abort of `signal` interrupts it. Emits every frame but `task_started` and
   * `task_completed`; emits an `error` frame before it answers `failed`. Never rejects for what a model,
   * a tool or the conversation does.
   */
  runTask(task: AgentTask, signal: AbortSignal): Promise<TaskOutcome>;
  /** The agent's own record of the conversation: opaque text that `setup.conversation` brings back. */
  conversation(): string;
  /** Ends every process that belongs to the agent. */
  close(): Promise<void>;
}

/** Starts an agent; with `setup.conversation` it goes on from there. */
export type StartAgent = (context: AgentContext) => Promise<AgentSession>;
