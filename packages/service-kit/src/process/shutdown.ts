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

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** Ctrl-C under npm arrives twice, from the terminal and from npm: so soon, a second one is the same one. */
const ECHO_MS = 1000;

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

  /**
   * Ends the process on SIGTERM, Ctrl-C and hang-up; a second signal ends it at once.
   * The exit code is 0 after an orderly end, 1 when a task failed.
   */
  installSignalHandlers(exit: (code: number) => void = (code) => process.exit(code)): () => void {
    let firstAt = 0;
    const handle = (signal: NodeJS.Signals): void => {
      if (this.#ending !== undefined) {
        if (Date.now() - firstAt < ECHO_MS) return;
        this.#logger.warn({ signal }, 'second signal: ending at once');
        exit(1);
        return;
      }
      firstAt = Date.now();
      void this.run(signal).then((failed) => exit(failed.length === 0 ? 0 : 1));
    };
    for (const signal of SIGNALS) process.on(signal, handle);
    return () => {
      for (const signal of SIGNALS) process.off(signal, handle);
    };
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
