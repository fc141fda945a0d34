import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The supervised programs of a desktop, in words for an agent. */
const NAMES: Readonly<Record<string, string>> = {
  browser: 'the browser',
  'element-server': 'the element server',
  'window-manager': 'the window manager',
  xvfb: 'the display',
};

/** Notices when a program of the desktop has crashed and was started again. */
export class Restarts {
  readonly #directory: string;
  #seen: ReadonlyMap<string, number> | undefined;

  /** Counts from the first call of {@link notices}. `directory` has a file for each program, with its starts. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** A sentence for each program that was started again since the last call. */
  async notices(): Promise<string[]> {
    const now = await this.#read();
    const before = this.#seen ?? now;
    this.#seen = now;
    return [...now]
      .filter(([name, starts]) => starts > (before.get(name) ?? 1))
      .map(([name]) => `[Note: ${NAMES[name] ?? name} crashed and was started again.]`);
  }

  async #read(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>();
    let names: string[] = [];
    try {
      names = await readdir(this.#directory);
    } catch (error) {
      // Nothing has been started yet.
      if (!isMissing(error)) throw error;
    }
    for (const name of names.sort()) {
      const count = Number(await readFile(join(this.#directory, name), 'utf8'));
      // Empty while it is being written.
      if (count > 0) counts.set(name, count);
      else counts.set(name, this.#seen?.get(name) ?? 1);
    }
    return counts;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
