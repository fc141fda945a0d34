import { createInterface } from 'node:readline';
import { untilAborted } from '@svc/service-kit/concurrency';

/** Where a person's, or a program's, lines come from. */
export interface Prompts {
  /** The next line; undefined when there are no more. Rejects with the signal's reason. */
  next(signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

const PROMPT = '› ';
const MOST_HISTORY = 200;

/** Lines from a terminal, with editing and a history, or from whatever standard input is. */
export function openPrompts(onInterrupt: () => void): Prompts {
  return process.stdin.isTTY ? new TerminalPrompts(onInterrupt) : new PipedPrompts();
}

/** Asks only while nothing else is shown; in between the terminal is as it was, so that Ctrl-C is a signal. */
class TerminalPrompts implements Prompts {
  #history: string[] = [];
  readonly #onInterrupt: () => void;

  constructor(onInterrupt: () => void) {
    this.#onInterrupt = onInterrupt;
  }

  async next(signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted();
    const terminal = createInterface({
      input: process.stdin,
      output: process.stderr,
      history: this.#history,
      historySize: MOST_HISTORY,
      prompt: PROMPT,
    });
    const asked = Promise.withResolvers<string | undefined>();
    const abort = () => asked.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    terminal.on('history', (history) => {
      this.#history = [...history];
    });
    terminal.on('line', asked.resolve);
    terminal.on('close', () => asked.resolve(undefined));
    terminal.on('SIGINT', () => {
      this.#onInterrupt();
      if (!signal.aborted) terminal.prompt();
    });
    terminal.prompt();
    try {
      return await asked.promise;
    } finally {
      signal.removeEventListener('abort', abort);
      terminal.close();
    }
  }

  close(): void {
    // Between two questions nothing is open.
  }
}

class PipedPrompts implements Prompts {
  readonly #lines = createInterface({ input: process.stdin });
  readonly #iterator = this.#lines[Symbol.asyncIterator]();

  async next(signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted();
    const { done, value } = await untilAborted(this.#iterator.next(), signal);
    return done === true ? undefined : value;
  }

  close(): void {
    this.#lines.close();
    process.stdin.destroy();
  }
}
