import { readFile, rm } from 'node:fs/promises';
import {
  type DrainTimes,
  identityOf,
  isAlive,
  NO_DRAIN,
  type ProcessIdentity,
  writeFileAtomic,
} from '@svc/service-kit/process';
import { VERSION } from '../version.ts';

/** A worker of the service, as `svc status` shows it. */
export interface WorkerSummary {
  readonly worker_id: string;
  readonly url: string;
  readonly accelerator: string;
}

/** The command that a service process runs. */
export type ServiceComponent = 'up' | 'control-plane' | 'runtime' | 'worker';

/** The file in which a running service describes itself for `svc status` and `svc down`. */
export interface ServiceRecord {
  readonly process: ProcessIdentity;
  readonly state: 'starting' | 'ready';
  /** Missing, as `drain_ms` is, in the record of an earlier version. */
  readonly component?: ServiceComponent;
  /** How long the process may wait for requests in progress when it stops, in milliseconds. */
  readonly drain_ms?: number;
  /** How long the process may save the sandboxes that it ends when it stops, in milliseconds. Missing if it has none. */
  readonly end_ms?: number;
  readonly version: string;
  readonly started_at: string;
  /** Set once the control plane is listening. */
  readonly base_url?: string;
  readonly runtime_url?: string;
  readonly ca_file?: string;
  readonly workers?: readonly WorkerSummary[];
}

/** Writes the record of this process while it serves. */
export class RecordKeeper {
  readonly #file: string;
  #record: ServiceRecord;

  private constructor(file: string, record: ServiceRecord) {
    this.#file = file;
    this.#record = record;
  }

  /** Creates the record; `endMs` is its `end_ms`. The caller holds the lock on the data directory. */
  static async open(
    file: string,
    component: ServiceComponent,
    drain: DrainTimes = NO_DRAIN,
    endMs?: number,
  ): Promise<RecordKeeper> {
    const me = await identityOf(process.pid);
    if (me === undefined) throw new Error('this process is not visible in /proc');
    const keeper = new RecordKeeper(file, {
      process: me,
      state: 'starting',
      component,
      drain_ms: drain.noticeMs + drain.workMs,
      ...(endMs === undefined ? {} : { end_ms: endMs }),
      version: VERSION,
      started_at: new Date().toISOString(),
    });
    await keeper.update({});
    return keeper;
  }

  /** Adds fields to the record and writes it atomically. */
  async update(more: Partial<ServiceRecord>): Promise<ServiceRecord> {
    this.#record = { ...this.#record, ...more };
    const text = `${JSON.stringify(this.#record, null, 2)}\n`;
    await writeFileAtomic(this.#file, text, { mode: 0o600 });
    return this.#record;
  }

  /** Deletes the record when the service has stopped. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }
}

/** Reads the record of the service that last ran on this data directory; undefined after a clean shutdown. */
export async function readServiceRecord(file: string): Promise<ServiceRecord | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as ServiceRecord;
  } catch {
    // Only this program writes the file, atomically; a corrupt one is treated as missing.
    return undefined;
  }
}

/** Reads the record of the service that is running on this data directory; undefined if its process is gone. */
export async function runningService(file: string): Promise<ServiceRecord | undefined> {
  const record = await readServiceRecord(file);
  return record !== undefined && (await isAlive(record.process)) ? record : undefined;
}
