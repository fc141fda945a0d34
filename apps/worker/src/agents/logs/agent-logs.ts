import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LIMITS, type LogsResponse, type LogTail } from '@svc/contract';
import { LimitedStream } from '@svc/service-kit/streams';
import { tailOf } from './tail.ts';

const EMPTY: LogsResponse = { content: '', truncated: false, total_bytes: 0 };
/** More than a runtime keeps of its agent's log, in bytes. */
const MAX_BYTES = 32 * 1024 * 1024;
const SUFFIX = '.stderr.log';

/** Copies of agents' stderr logs, for sandboxes that are paused or have ended. */
export class AgentLogs {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Copies a sandbox's log, replacing an older copy. Rejects a log over 32 MiB. */
  async keep(vmId: string, log: Readable): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const path = this.#path(vmId);
    const temporary = `${path}.tmp`;
    const meter = new LimitedStream({ maxBytes: MAX_BYTES });
    const file = await open(temporary, 'w', 0o600);
    try {
      await pipeline(log, meter, file.createWriteStream());
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  /** The tail of a sandbox's copy; empty without one. */
  async read(vmId: string, wanted: LogTail): Promise<LogsResponse> {
    const file = await orUndefined(open(this.#path(vmId), 'r'));
    if (file === undefined) return EMPTY;
    try {
      return await tailOf(file, wanted);
    } finally {
      await file.close();
    }
  }

  /** Deletes copies older than the records of ended sandboxes are kept, except those that `isKept` names. */
  async sweep(now: number, isKept: (vmId: string) => boolean): Promise<void> {
    for (const name of (await orUndefined(readdir(this.#directory))) ?? []) {
      const path = join(this.#directory, name);
      const modified = (await orUndefined(stat(path)))?.mtimeMs ?? now;
      const isOld = now - modified > LIMITS.destroyedRecordSeconds * 1000;
      const [vmId = ''] = name.split(SUFFIX);
      if (isOld && !isKept(vmId)) await rm(path, { force: true });
    }
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
