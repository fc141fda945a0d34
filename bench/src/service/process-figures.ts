import { readFile } from 'node:fs/promises';

const TICK_MS = 10;
const KIB_PER_MIB = 1024;

/** Milliseconds of CPU that a process has used, and with it the children it has waited for. */
export async function cpuMs(pid: number, withChildren = false): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const counted = fields.slice(11, withChildren ? 15 : 13);
  return counted.reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Resident memory of a process in MiB. */
export async function residentMib(pid: number): Promise<number> {
  return field(await readFile(`/proc/${pid}/status`, 'utf8'), 'VmRSS');
}

/** Proportional share of memory of a process in MiB: what is shared counts in parts. Needs root. */
export async function proportionalMib(pid: number): Promise<number> {
  return field(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'), 'Pss');
}

function field(text: string, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
  if (kib === undefined) throw new Error(`/proc shows no ${name}`);
  return Number(kib) / KIB_PER_MIB;
}
