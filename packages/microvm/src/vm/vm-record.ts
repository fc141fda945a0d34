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
  readonly hostname: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, unknown>>;
}

/** Writes the record for a later process of this machine. A crash of the machine ends the VM as well. */
export async function writeVmRecord(directory: string, record: VmRecord): Promise<void> {
  const path = join(directory, 'vm.json');
  await writeFileAtomic(path, JSON.stringify(record), { durable: false });
}

/** The record of a VM's directory; undefined when the VM never got so far, or ended with the machine. */
export async function readVmRecord(directory: string): Promise<VmRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, 'vm.json'), 'utf8'));
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (absent || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
