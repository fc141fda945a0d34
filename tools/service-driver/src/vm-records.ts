import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orIfAbsent } from './or-if-absent.ts';

/** A VM of a service, read from its directory. Every field but the name is undefined until the service has written it. */
export interface VmRecord {
  /** Name of the VM's directory. */
  readonly name: string;
  readonly pid: number | undefined;
  /** The sandbox that owns the VM; undefined in the pool. */
  readonly vmId: string | undefined;
  readonly role: 'pool' | 'sandbox' | undefined;
  readonly state: string | undefined;
  /** Whether the service has begun to remove the VM. */
  readonly ending: boolean;
  readonly vcpu: number | undefined;
  readonly memoryMib: number | undefined;
}

interface VmFile {
  readonly process?: { readonly pid?: number };
  readonly vcpu?: number;
  readonly memoryMib?: number;
  readonly labels?: {
    readonly role?: 'pool' | 'sandbox';
    readonly vm_id?: string;
    readonly state?: string;
    readonly end_reason?: string;
  };
}

/** The VMs in a data directory. */
export async function vmRecords(dataDir: string): Promise<VmRecord[]> {
  const directory = join(dataDir, 'vms');
  const names = await orIfAbsent(readdir(directory), []);
  return Promise.all(names.map((name) => readVm(directory, name)));
}

/** The process that runs a sandbox. @throws Error when no VM in the data directory belongs to it */
export async function vmPid(dataDir: string, vmId: string): Promise<number> {
  const vm = (await vmRecords(dataDir)).find((one) => one.vmId === vmId);
  if (vm?.pid === undefined) throw new Error(`no VM of ${vmId} in ${dataDir}`);
  return vm.pid;
}

async function readVm(directory: string, name: string): Promise<VmRecord> {
  const text = await orIfAbsent(readFile(join(directory, name, 'vm.json'), 'utf8'), '{}');
  const { process, labels, vcpu, memoryMib }: VmFile = JSON.parse(text);
  return {
    name,
    pid: process?.pid,
    vmId: labels?.vm_id,
    role: labels?.role,
    state: labels?.state,
    ending: labels?.end_reason !== undefined,
    vcpu,
    memoryMib,
  };
}
