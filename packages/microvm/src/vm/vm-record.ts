import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ProcessIdentity, writeFileAtomic } from '@svc/service-kit/process';

/** Everything that a later process needs to adopt a VM. Contains secrets, so only root may read it. */
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
  /** In SSH's wire format, base64. */
  readonly hostKey: string;
  readonly hostname: string;
  readonly env: Readonly<Record<string, string>>;
  /** See `PersonalizeOptions`. Undefined until the VM is assigned to its owner. */
  readonly owner?: string;
  readonly labels: Readonly<Record<string, unknown>>;
}

/** Writes the record for a later process. It need not survive a crash of the machine, which ends the VM as well. */
export async function writeVmRecord(directory: string, record: VmRecord): Promise<void> {
  const path = join(directory, 'vm.json');
  await writeFileAtomic(path, JSON.stringify(record), { durable: false });
}

/** Reads the record in a VM's directory. Undefined when it was never written, or was lost in a crash of the machine. */
export async function readVmRecord(directory: string): Promise<VmRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(directory, 'vm.json'), 'utf8'));
  } catch (error) {
    const absent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (absent || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
