import { readdir, readFile } from 'node:fs/promises';
import { orIfAbsent } from './absent.ts';

/** A VM of a service, as its directory tells. */
export interface VmOnDisk {
  /** Name of its directory. */
  readonly name: string;
  /** Its process, once it is known by name. */
  readonly pid: number | undefined;
  /** The sandbox it belongs to; undefined for one that waits for an owner or is being made. */
  readonly vmId: string | undefined;
  readonly state: string | undefined;
  /** Whether it has begun to end. */
  readonly ending: boolean;
}

interface VmFile {
  readonly process?: { readonly pid?: number };
  readonly labels?: {
    readonly vm_id?: string;
    readonly state?: string;
    readonly end_reason?: string;
  };
}

/** Every VM that a data directory knows now. */
export async function vmsOf(dataDir: string): Promise<VmOnDisk[]> {
  const names = await orIfAbsent(readdir(`${dataDir}/vms`), []);
  return Promise.all(names.map((name) => readVm(`${dataDir}/vms`, name)));
}

/** The process that runs a sandbox. */
export async function vmProcessOf(dataDir: string, vmId: string): Promise<number> {
  const vm = (await vmsOf(dataDir)).find((one) => one.vmId === vmId);
  if (vm?.pid === undefined) throw new Error(`no VM of ${vmId} in ${dataDir}`);
  return vm.pid;
}

async function readVm(directory: string, name: string): Promise<VmOnDisk> {
  const text = await orIfAbsent(readFile(`${directory}/${name}/vm.json`, 'utf8'), '{}');
  const { process, labels }: VmFile = JSON.parse(text);
  return {
    name,
    pid: process?.pid,
    vmId: labels?.vm_id,
    state: labels?.state,
    ending: labels?.end_reason !== undefined,
  };
}
