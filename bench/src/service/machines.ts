import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A VM of the service, as its record on this machine tells. */
export interface ServiceMachine {
  readonly pid: number;
  /** Version of the image that it was made from. */
  readonly image: string;
  readonly template: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly role: 'pool' | 'sandbox' | undefined;
  readonly sandboxId: string | undefined;
}

interface VmFile {
  readonly process: { readonly pid: number };
  readonly image: string;
  readonly template: string;
  readonly vcpu: number;
  readonly memoryMib: number;
  readonly labels: { readonly role?: 'pool' | 'sandbox'; readonly vm_id?: string };
}

/** The VMs that live below a data directory. */
export async function serviceMachines(dataDir: string): Promise<ServiceMachine[]> {
  const directory = join(dataDir, 'vms');
  const machines = await Promise.all(
    (await readdir(directory)).map((id) => readMachine(join(directory, id, 'vm.json'))),
  );
  return machines.filter((machine) => machine !== undefined);
}

async function readMachine(path: string): Promise<ServiceMachine | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // It is being made, or has just ended.
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const { process, labels, image, template, vcpu, memoryMib } = JSON.parse(text) as VmFile;
  return {
    pid: process.pid,
    image,
    template,
    vcpu,
    memoryMib,
    role: labels.role,
    sandboxId: labels.vm_id,
  };
}
