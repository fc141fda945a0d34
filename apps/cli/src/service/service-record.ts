import { readFile, rm } from 'node:fs/promises';
import {
  identityOf,
  isAlive,
  type ProcessIdentity,
  writeFileAtomic,
} from '@svc/service-kit/process';
import { VERSION } from '../version.ts';

/** A worker of the service, as `status` shows it. */
export interface WorkerSummary {
  readonly worker_id: string;
  readonly url: string;
  readonly accelerator: string;
}

/** What a running service says of itself, for `status` and `down`. */
export interface ServiceRecord {
  readonly process: ProcessIdentity;
  readonly state: 'starting' | 'ready';
  readonly version: string;
  readonly started_at: string;
  /** Known once the control plane listens. */
  readonly base_url?: string;
  readonly runtime_url?: string;
  readonly ca_file?: string;
  readonly workers?: readonly WorkerSummary[];
}

/** The record of this process, for as long as it serves. */
export class RecordKeeper {
  readonly #file: string;
  #record: ServiceRecord;

  private constructor(file: string, record: ServiceRecord) {
    this.#file = file;
    this.#record = record;
  }

  /** Begins the record. The caller holds the lock of the data directory. */
  static async open(file: string): Promise<RecordKeeper> {
    const me = await identityOf(process.pid);
    if (me === undefined) throw new Error('/proc does not show this process');
    const keeper = new RecordKeeper(file, {
      process: me,
      state: 'starting',
      version: VERSION,
      started_at: new Date().toISOString(),
    });
    await keeper.update({});
    return keeper;
  }

  /** Adds to the record and shows it to others. */
  async update(more: Partial<ServiceRecord>): Promise<ServiceRecord> {
    this.#record = { ...this.#record, ...more };
    const text = `${JSON.stringify(this.#record, null, 2)}\n`;
    await writeFileAtomic(this.#file, text, { mode: 0o600 });
    return this.#record;
  }

  /** Ends the record: nothing runs here any more. */
  async remove(): Promise<void> {
    await rm(this.#file, { force: true });
  }
}

/** The record of the service that ran last on this data directory, running or not. */
export async function readServiceRecord(file: string): Promise<ServiceRecord | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as ServiceRecord;
  } catch {
    // Only this program writes the file, and atomically: a damaged one tells as much as none.
    return undefined;
  }
}

/** The record of the service that runs on this data directory now. */
export async function runningService(file: string): Promise<ServiceRecord | undefined> {
  const record = await readServiceRecord(file);
  return record !== undefined && (await isAlive(record.process)) ? record : undefined;
}
