import { readFile } from 'node:fs/promises';

const TICK_MS = 10;
const KIB_PER_MIB = 1024;

/** CPU time that a process has used, in milliseconds; with children, also that of the children it has waited for. */
export async function cpuMs(pid: number, withChildren = false): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const counted = fields.slice(11, withChildren ? 15 : 13);
  return counted.reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Resident memory of a process, in MiB. */
export async function residentMib(pid: number): Promise<number> {
  return field(await readFile(`/proc/${pid}/status`, 'utf8'), 'VmRSS');
}

/** Proportional set size of a process, in MiB: shared pages are divided among their users. Needs root. */
export async function proportionalMib(pid: number): Promise<number> {
  return field(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'), 'Pss');
}

function field(text: string, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
  if (kib === undefined) throw new Error(`/proc has no ${name} for this process`);
  return Number(kib) / KIB_PER_MIB;
}
