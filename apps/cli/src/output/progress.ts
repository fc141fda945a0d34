import { stripVTControlCharacters } from 'node:util';
import { formatDuration } from './format.ts';

const REDRAW_MS = 250;
/** Interval between the lines about a running step if the output is not a terminal. */
const REPORT_MS = 15_000;
const CLEAR_LINE = '\r\u001b[2K';

/** Shows running steps and their durations: a live line on a terminal, plain lines elsewhere. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  readonly #running = new Map<string, { readonly started: number; note: string; shown: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(out: NodeJS.WriteStream = process.stdout) {
    this.#out = out;
  }

  /** Prints a line; colours are kept only on a terminal. */
  line(text: string): void {
    this.#write(`${this.#out.isTTY ? text : stripVTControlCharacters(text)}\n`);
  }

  /**
   * Shows `title` while `work` runs, then the text that `outcome` returns for its result. `work` reports its progress
   * through `note`. Steps may run concurrently.
   */
  async step<T>(
    title: string,
    work: (note: (text: string) => void) => Promise<T>,
    outcome: (result: T) => string = () => '',
  ): Promise<T> {
    const entry = { started: performance.now(), note: '', shown: performance.now() };
    this.#running.set(title, entry);
    this.#timer ??= setInterval(() => this.#tick(), REDRAW_MS);
    this.#timer.unref();
    const spent = () => formatDuration(performance.now() - entry.started);
    try {
      const result = await work((text) => {
        entry.note = text;
      });
      this.#end(title, `  ✓ ${title.padEnd(14)} ${outcome(result).padEnd(46)} ${spent()}`);
      return result;
    } catch (error) {
      this.#end(title, `  ✗ ${title.padEnd(14)} failed after ${spent()}`);
      throw error;
    }
  }

  #end(title: string, line: string): void {
    this.#running.delete(title);
    if (this.#running.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    this.#write(`${line.trimEnd()}\n`);
  }

  #tick(): void {
    if (this.#out.isTTY) {
      this.#write('');
      return;
    }
    for (const [title, entry] of this.#running) {
      const now = performance.now();
      if (now - entry.shown < REPORT_MS) continue;
      entry.shown = now;
      this.#out.write(`  … ${this.#describe(title, entry)}\n`);
    }
  }

  /** Writes `text` above the live line and redraws that line. */
  #write(text: string): void {
    if (!this.#out.isTTY) {
      this.#out.write(text);
      return;
    }
    const live = [...this.#running]
      .map(([title, entry]) => this.#describe(title, entry))
      .join(' · ');
    const line = live === '' ? '' : `  … ${live}`.slice(0, Math.max(20, this.#out.columns - 1));
    this.#out.write(`${CLEAR_LINE}${text}${line}`);
  }

  #describe(title: string, entry: { started: number; note: string }): string {
    const spent = Math.floor((performance.now() - entry.started) / 1000);
    return [title, entry.note, spent > 0 ? `${spent} s` : '']
      .filter((part) => part !== '')
      .join(' ');
  }
}
