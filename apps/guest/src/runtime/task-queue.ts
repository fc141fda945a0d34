import { LIMITS } from '@svc/contract';
import type { AgentTask } from '../agents/agent.ts';

export interface TaskQueueOptions {
  /** Runs a task to its end. Never rejects. */
  readonly run: (task: AgentTask, signal: AbortSignal) => Promise<void>;
  /** A task that waited will not be run. */
  readonly onTakenBack: (task: AgentTask) => void;
}

/** The tasks of a session: one runs, a few wait. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  #waiting: AgentTask[] = [];
  #running: { readonly task: AgentTask; readonly abort: AbortController } | undefined;

  constructor(options: TaskQueueOptions) {
    this.#options = options;
  }

  /** False when too many wait already. */
  add(task: AgentTask): boolean {
    if (this.#running !== undefined && this.#waiting.length >= LIMITS.queuedTasks) return false;
    this.#waiting.push(task);
    if (this.#running === undefined) void this.#runAll();
    return true;
  }

  /** Ends the running task, or with an id whichever task has it, running or waiting. */
  interrupt(id: string | undefined): void {
    if (id === undefined || this.#running?.task.id === id) this.#running?.abort.abort();
    if (id === undefined) return;
    const taken = this.#waiting.filter((task) => task.id === id);
    this.#waiting = this.#waiting.filter((task) => task.id !== id);
    for (const task of taken) this.#options.onTakenBack(task);
  }

  async #runAll(): Promise<void> {
    for (let task = this.#waiting.shift(); task !== undefined; task = this.#waiting.shift()) {
      const abort = new AbortController();
      this.#running = { task, abort };
      await this.#options.run(task, abort.signal);
      this.#running = undefined;
    }
  }
}
