import { LIMITS } from '@svc/contract';
import type { AgentTask } from '../agents/agent.ts';

export interface TaskQueueOptions {
  /** Runs a task to completion. Never rejects. */
  readonly run: (task: AgentTask, signal: AbortSignal) => Promise<void>;
  /** Called for a waiting task that was interrupted and will not run. */
  readonly onCancelled: (task: AgentTask) => void;
}

/** The tasks of a session. One runs at a time; the number of waiting ones is bounded. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  #waiting: AgentTask[] = [];
  #running: { readonly task: AgentTask; readonly abort: AbortController } | undefined;

  constructor(options: TaskQueueOptions) {
    this.#options = options;
  }

  /** False when the queue is full. */
  add(task: AgentTask): boolean {
    if (this.#running !== undefined && this.#waiting.length >= LIMITS.queuedTasks) return false;
    this.#waiting.push(task);
    if (this.#running === undefined) void this.#runAll();
    return true;
  }

  /** Interrupts the running task or, given an id, the running and waiting tasks with that id. */
  interrupt(id: string | undefined): void {
    if (id === undefined || this.#running?.task.id === id) this.#running?.abort.abort();
    if (id === undefined) return;
    const cancelled = this.#waiting.filter((task) => task.id === id);
    this.#waiting = this.#waiting.filter((task) => task.id !== id);
    for (const task of cancelled) this.#options.onCancelled(task);
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
