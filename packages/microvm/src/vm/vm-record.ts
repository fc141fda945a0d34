import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ProcessIdentity, writeFileAtomic } from '@svc/service-kit/process';

/** What a later process needs to take over a VM. Holds secrets: readable by root alone. */
export interface VmRecord {
  readonly id: string;
  readonly slot: number;
  readonly process: ProcessIdentity;
  readonly template: string;
  readonly image: string;
  readonly rootfs: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly diskMib: number;
  readonly token: string;
  /** Base64. */
  readonly hostKey: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, unknown>>;
}

export async function writeVmRecord(directory: string, record: VmRecord): Promise<void> {
  await writeFileAtomic(join(directory, 'vm.json'), JSON.stringify(record));
}

/** The record of a VM's directory; undefined when the VM never got so far. */
export async function readVmRecord(directory: string): Promise<VmRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, 'vm.json'), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
