import type { Logger } from '@svc/service-kit/logging';
import type { StopRequest } from '../stop-signals.ts';

interface Closer {
  readonly name: string;
  readonly deadlineMs: number;
  close(request: StopRequest): Promise<void>;
}

/** The ends of the pieces that have started, run in the opposite order, each with a deadline. */
export class Closers {
  readonly #closers: Closer[] = [];
  readonly #logger: Logger;
  #closing: Promise<string[]> | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  add(closer: Closer): void {
    this.#closers.push(closer);
  }

  /** Ends everything, once however often it is called. Gives the names of what failed or did not end in time. */
  closeAll(request: StopRequest): Promise<string[]> {
    this.#closing ??= this.#run(request);
    return this.#closing;
  }

  async #run(request: StopRequest): Promise<string[]> {
    const failed: string[] = [];
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      try {
        await withinDeadline(closer.close(request), closer.deadlineMs);
      } catch (error) {
        this.#logger.error({ err: error, piece: closer.name }, 'a piece did not end in order');
        failed.push(closer.name);
      }
    }
    return failed;
  }
}

async function withinDeadline(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
