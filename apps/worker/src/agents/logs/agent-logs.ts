import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '@svc/service-kit';
import type { LogEnd } from '@svc/service-kit/log-tail';

const SUFFIX = '.log-end';
const LINE_FEED = 0x0a;

/** A copy on disk. */
export interface KeptLog {
  readonly vmId: string;
  /** Wall milliseconds. */
  readonly keptAt: number;
}

/**
 * Copies of the ends of agents' logs on disk, for sandboxes that are paused, whose agent has exited, or that have ended.
 * A copy of the latter two stays until the control plane has it.
 */
export class AgentLogs {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Stores a copy, in place of an older one. */
  async keep(vmId: string, { bytes, totalBytes }: LogEnd): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const data = Buffer.concat([Buffer.from(`${totalBytes}\n`), bytes]);
    await writeFileAtomic(this.#path(vmId), data, { durable: false });
  }

  /** The copy of a sandbox's log; undefined without one. */
  async find(vmId: string): Promise<LogEnd | undefined> {
    const data = await orUndefined(readFile(this.#path(vmId)));
    if (data === undefined) return undefined;
    const header = data.indexOf(LINE_FEED);
    const bytes = data.subarray(header + 1);
    return { bytes, totalBytes: Number(data.toString('latin1', 0, header)) };
  }

  async remove(vmId: string): Promise<void> {
    await rm(this.#path(vmId), { force: true });
  }

  async list(): Promise<KeptLog[]> {
    const kept: KeptLog[] = [];
    for (const name of (await orUndefined(readdir(this.#directory))) ?? []) {
      const modified = (await orUndefined(stat(join(this.#directory, name))))?.mtimeMs;
      if (!name.endsWith(SUFFIX) || modified === undefined) continue;
      kept.push({ vmId: decodeURIComponent(name.slice(0, -SUFFIX.length)), keptAt: modified });
    }
    return kept;
  }

  #path(vmId: string): string {
    return join(this.#directory, `${encodeURIComponent(vmId)}${SUFFIX}`);
  }
}

/** Undefined when the file does not exist. */
async function orUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
