import { Transform } from 'node:stream';
import { formatBytes } from './format.ts';

const WIDTH = 24;
const REDRAW_MS = 100;
const CLEAR_LINE = '\r\u001b[2K';

/** Shows the progress of one transfer on a terminal, on standard error; elsewhere it only counts. */
export class TransferBar {
  readonly #title: string;
  readonly #total: number | undefined;
  readonly #out: NodeJS.WriteStream;
  #bytes = 0;
  #drawnAt = 0;

  /** `total` is the size in bytes, if it is known. */
  constructor(title: string, total: number | undefined, out: NodeJS.WriteStream = process.stderr) {
    this.#title = title;
    this.#total = total;
    this.#out = out;
  }

  /** The bytes that have passed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A stream that passes bytes on and draws how many they are. It removes the bar at its end. */
  count(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#bytes += chunk.length;
        this.#draw();
        done(null, chunk);
      },
      destroy: (error, done) => {
        if (this.#out.isTTY) this.#out.write(CLEAR_LINE);
        done(error);
      },
    });
  }

  #draw(): void {
    const now = performance.now();
    if (!this.#out.isTTY || now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    const line = `${this.#title} ${progressText(this.#bytes, this.#total)}`;
    this.#out.write(CLEAR_LINE + line.slice(-Math.max(20, this.#out.columns - 1)));
  }
}

/** Formats progress: `█████░░░░░  50 %  1.0 MiB of 2.0 MiB`, or only the bytes if the total is unknown. */
export function progressText(bytes: number, total: number | undefined): string {
  if (total === undefined || total === 0) return formatBytes(bytes);
  const part = Math.min(1, bytes / total);
  const full = Math.round(part * WIDTH);
  const bar = '█'.repeat(full) + '░'.repeat(WIDTH - full);
  const percent = `${Math.floor(part * 100)} %`.padStart(5);
  return `${bar} ${percent}  ${formatBytes(bytes)} of ${formatBytes(total)}`;
}
