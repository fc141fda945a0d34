/** The orderly end of a process: phases one after another, the tasks of a phase side by side, each with a deadline. */

import type { Logger } from 'pino';

/** In this order. */
export const SHUTDOWN_PHASES = [
  /** Take no new work. */
  'refuse',
  /** Tell long-lived clients and part from them. */
  'disconnect',
  /** Save what must not be lost. */
  'flush',
  /** End the sandboxes, or leave them behind in order. */
  'end',
  /** Close servers, pools and files. */
  'close',
] as const;
export type ShutdownPhase = (typeof SHUTDOWN_PHASES)[number];

export interface ShutdownTask {
  readonly name: string;
  readonly phase: ShutdownPhase;
  /** After this the end goes on without it. */
  readonly deadlineMs: number;
  run(signal: AbortSignal): Promise<void> | void;
}

export class Shutdown {
  readonly #logger: Logger;
  readonly #tasks: ShutdownTask[] = [];
  readonly #begun = new AbortController();
  #ending: Promise<readonly string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Aborts when the end begins. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  add(task: ShutdownTask): void {
    this.#tasks.push(task);
  }

  /** Ends everything, once however often it is called. Gives the names of the tasks that failed or ran late. */
  run(reason: string): Promise<readonly string[]> {
    this.#ending ??= this.#runAll(reason);
    return this.#ending;
  }

  async #runAll(reason: string): Promise<readonly string[]> {
    this.#logger.info({ reason }, 'shutting down');
    this.#begun.abort(new Error(`shutting down: ${reason}`));
    const failed: string[] = [];
    for (const phase of SHUTDOWN_PHASES) {
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
    const expired = new Promise<never>((_resolve, reject) => {
      late.signal.addEventListener('abort', () => reject(late.signal.reason), { once: true });
    });
    try {
      await Promise.race([Promise.resolve().then(() => task.run(late.signal)), expired]);
      return undefined;
    } catch (err) {
      this.#logger.error({ err, task: task.name, phase: task.phase }, 'shutdown task failed');
      return task.name;
    } finally {
      clearTimeout(timer);
    }
  }
}
