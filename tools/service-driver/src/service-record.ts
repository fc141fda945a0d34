import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orIfAbsent } from './or-if-absent.ts';

/** Fields of `service.json`, in which a running service describes itself. */
export interface ServiceRecord {
  readonly process: { readonly pid: number };
  readonly state: 'starting' | 'ready';
  /** Absent before the control plane listens, and for a runtime host. */
  readonly base_url?: string;
  readonly runtime_url?: string;
  readonly ca_file?: string;
  readonly workers?: readonly { readonly url: string; readonly accelerator: string }[];
}

/** Reads the record of the last service on a data directory; undefined before the first has written one. */
export async function readServiceRecord(dataDir: string): Promise<ServiceRecord | undefined> {
  const text = await orIfAbsent(readFile(join(dataDir, 'service.json'), 'utf8'), undefined);
  // The file is replaced atomically, so its content is always complete.
  return text === undefined ? undefined : (JSON.parse(text) as ServiceRecord);
}
