import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';

const FALLBACK_KHZ = 2_000_000;
/** Nominal frequencies in kHz, on machines that have them. The second is that of Intel's scaling driver. */
const NOMINAL_FILES = [
  '/sys/devices/system/cpu/cpu0/tsc_freq_khz',
  '/sys/devices/system/cpu/cpu0/cpufreq/base_frequency',
];

/**
 * The machine's nominal processor frequency in kHz. The time stamp counter of an emulated guest is that of the machine,
 * which runs at this frequency however the processor scales its clock.
 */
export async function tscKhz(): Promise<number> {
  for (const path of NOMINAL_FILES) {
    const khz = Number(await readFile(path, 'utf8').catch(() => ''));
    if (khz > 0) return khz;
  }
  return nominalKhz(cpus()[0]?.model ?? '', await readFile('/proc/cpuinfo', 'utf8'));
}

/** From a processor's name, if it has its frequency, else from the current frequency in /proc/cpuinfo. */
export function nominalKhz(model: string, cpuinfo: string): number {
  const ghz = Number(/@ ([\d.]+)GHz/.exec(model)?.[1]);
  if (ghz > 0) return Math.round(ghz * 1_000_000);
  const mhz = Number(/^cpu MHz\s*:\s*([\d.]+)/m.exec(cpuinfo)?.[1]);
  return mhz > 0 ? Math.round(mhz * 1000) : FALLBACK_KHZ;
}
