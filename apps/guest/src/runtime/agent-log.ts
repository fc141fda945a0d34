import { appendFile, mkdir, open, rename, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

const MAX_BYTES = 16 * 1024 * 1024;
/** Bound of the text not yet written. */
const MAX_PENDING_CHARS = 4 * 1024 * 1024;
const DROPPED = '[output came faster than it could be written; some of it is left out]\n';

/** The agent's log file. When it exceeds 16 MiB, its older half is dropped. */
export class AgentLog {
  readonly #path: string;
  readonly #maxBytes: number;
  #pending = '';
  #dropped = false;
  #writing: Promise<void> | undefined;

  constructor(path: string, maxBytes = MAX_BYTES) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /** Appends text; it is written in the background. */
  append(text: string): void {
    if (this.#pending.length + text.length > MAX_PENDING_CHARS) {
      if (!this.#dropped) this.#pending += DROPPED;
      this.#dropped = true;
      return;
    }
    this.#pending += text;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Settles when all appended text is written. */
  async flushed(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  /** Never rejects: a full disk must not end the agent. */
  async #write(): Promise<void> {
    while (this.#pending !== '') {
      const text = this.#pending;
      this.#pending = '';
      this.#dropped = false;
      try {
        await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 });
        await appendFile(this.#path, text, { mode: 0o600 });
        if ((await stat(this.#path)).size > this.#maxBytes) await this.#dropOlderHalf();
      } catch (error) {
        console.error('the agent log cannot be written', error);
      }
    }
  }

  async #dropOlderHalf(): Promise<void> {
    const keep = Math.floor(this.#maxBytes / 2);
    const buffer = Buffer.alloc(keep);
    const file = await open(this.#path, 'r');
    try {
      const { size } = await file.stat();
      const { bytesRead } = await file.read(buffer, 0, keep, Math.max(0, size - keep));
      const kept = buffer.subarray(0, bytesRead);
      // Starts at a line boundary, if there is one.
      const start = kept.indexOf(0x0a) + 1;
      await writeFile(`${this.#path}.new`, kept.subarray(start), { mode: 0o600 });
    } finally {
      await file.close();
    }
    await rename(`${this.#path}.new`, this.#path);
  }
}
