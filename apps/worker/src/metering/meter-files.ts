import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit';
import { Compile } from 'typebox/compile';
import { MeterState } from './meter.ts';

const SUFFIX = '.json';
const states = Compile(MeterState);

/** The saved states of meters, one file each. They survive this process; a crash of the machine may lose the last ones. */
export class MeterFiles {
  readonly #directory: string;
  #made: Promise<unknown> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async save(state: MeterState): Promise<void> {
    this.#made ??= mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#made.catch((error) => {
      this.#made = undefined;
      throw error;
    });
    await writeFileAtomic(this.#path(state), JSON.stringify(state), { durable: false });
  }

  async remove(meter: Pick<MeterState, 'vm_id' | 'generation'>): Promise<void> {
    await rm(this.#path(meter), { force: true });
  }

  /** All saved states, and the names of the files that hold none, which are removed. */
  async load(): Promise<{ readonly saved: MeterState[]; readonly unreadable: string[] }> {
    const saved: MeterState[] = [];
    const unreadable: string[] = [];
    for (const name of await this.#names()) {
      const path = join(this.#directory, name);
      const state = parsed(await readFile(path, 'utf8'));
      if (states.Check(state)) saved.push(state);
      else {
        unreadable.push(name);
        await rm(path, { force: true });
      }
    }
    return { saved, unreadable };
  }

  async #names(): Promise<string[]> {
    try {
      return (await readdir(this.#directory)).filter((name) => name.endsWith(SUFFIX));
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw error;
    }
  }

  #path({ vm_id, generation }: Pick<MeterState, 'vm_id' | 'generation'>): string {
    return join(this.#directory, `${encodeURIComponent(vm_id)}.${generation}${SUFFIX}`);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
