import { createInterface } from 'node:readline';
import { untilAborted } from '@svc/service-kit/concurrency';

/** A source of prompts: a terminal or a pipe. */
export interface Prompts {
  /** The next line, or undefined at the end of the input. Rejects with the reason of `signal` when it aborts. */
  next(signal: AbortSignal): Promise<string | undefined>;
  close(): void;
}

const PROMPT = '› ';
const MAX_HISTORY_LINES = 200;

/** Opens standard input: with line editing and a history if it is a terminal, as plain lines otherwise. */
export function openPrompts(onInterrupt: () => void): Prompts {
  return process.stdin.isTTY ? new TerminalPrompts(onInterrupt) : new PipedPrompts();
}

/**
 * Holds the terminal only while it waits for a line. In between, the terminal is in its normal mode, in which Ctrl-C
 * sends a signal.
 */
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
      historySize: MAX_HISTORY_LINES,
      prompt: PROMPT,
    });
    const line = Promise.withResolvers<string | undefined>();
    const abort = () => line.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    terminal.on('history', (history) => {
      this.#history = [...history];
    });
    terminal.on('line', line.resolve);
    terminal.on('close', () => line.resolve(undefined));
    terminal.on('SIGINT', () => {
      this.#onInterrupt();
      if (!signal.aborted) terminal.prompt();
    });
    terminal.prompt();
    try {
      return await line.promise;
    } finally {
      signal.removeEventListener('abort', abort);
      terminal.close();
    }
  }

  close(): void {
    // Nothing is open between two prompts.
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
