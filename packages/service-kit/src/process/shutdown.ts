/** Orderly shutdown: phases in sequence, the tasks of a phase in parallel, each task with a deadline. */

import type { Logger } from 'pino';

/** In this order. */
export const SHUTDOWN_PHASES = [
  /** Accept no new work, and let the work in progress end. */
  'drain',
  /** Notify and disconnect long-lived clients. */
  'disconnect',
  /** Save data that must not be lost. */
  'flush',
  /** End the sandboxes, or detach from them. */
  'end',
  /** Close servers, pools and files. */
  'close',
] as const;
export type ShutdownPhase = (typeof SHUTDOWN_PHASES)[number];

export interface ShutdownTask {
  readonly name: string;
  readonly phase: ShutdownPhase;
  /** After this time, in milliseconds, the shutdown continues without the task. */
  readonly deadlineMs: number;
  run(signal: AbortSignal): Promise<void> | void;
}

export class Shutdown {
  readonly #logger: Logger;
  readonly #tasks: ShutdownTask[] = [];
  readonly #begun = new AbortController();
  readonly #hurry = new AbortController();
  #phase: ShutdownPhase | undefined;
  #ending: Promise<readonly string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Aborts when the shutdown begins. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  add(task: ShutdownTask): void {
    this.#tasks.push(task);
  }

  /**
   * Aborts the signals of the drain's tasks, so that the shutdown goes on without waiting for work in progress.
   * Returns false if it is not draining.
   */
  hurry(): boolean {
    if (this.#phase !== 'drain' || this.#hurry.signal.aborted) return false;
    this.#hurry.abort(new Error('the drain was cut short'));
    return true;
  }

  /** Runs all tasks, once even if called repeatedly. Returns the names of the tasks that failed or ran late. */
  run(reason: string): Promise<readonly string[]> {
    this.#ending ??= this.#runAll(reason);
    return this.#ending;
  }

  async #runAll(reason: string): Promise<readonly string[]> {
    this.#logger.info({ reason }, 'shutting down');
    this.#begun.abort(new Error(`shutting down: ${reason}`));
    const failed: string[] = [];
    for (const phase of SHUTDOWN_PHASES) {
      this.#phase = phase;
      const tasks = this.#tasks.filter((task) => task.phase === phase);
      const outcomes = await Promise.all(tasks.map((task) => this.#runTask(task)));
      failed.push(...outcomes.filter((name) => name !== undefined));
    }
    this.#logger.info({ failed }, 'shut down');
    return failed;
  }

  /** The name of the task if it failed or ran late. */
  async #runTask(task: ShutdownTask): Promise<string | undefined> {
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new Error(`not done after ${task.deadlineMs} ms`)),
      task.deadlineMs,
    );
    const signal =
      task.phase === 'drain' ? AbortSignal.any([late.signal, this.#hurry.signal]) : late.signal;
    const expired = new Promise<never>((_resolve, reject) => {
      late.signal.addEventListener('abort', () => reject(late.signal.reason), { once: true });
    });
    try {
      await Promise.race([Promise.resolve().then(() => task.run(signal)), expired]);
      return undefined;
    } catch (err) {
      this.#logger.error({ err, task: task.name, phase: task.phase }, 'shutdown task failed');
      return task.name;
    } finally {
      clearTimeout(timer);
    }
  }
}
