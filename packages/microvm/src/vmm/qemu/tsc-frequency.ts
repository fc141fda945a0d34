import { readFile } from 'node:fs/promises';

const FALLBACK_KHZ = 2_000_000;

/** The machine's nominal processor frequency in kHz, which is the frequency of a guest's time stamp counter. */
export async function tscKhz(): Promise<number> {
  const info = await readFile('/proc/cpuinfo', 'utf8');
  const mhz = Number(/^cpu MHz\s*:\s*([\d.]+)/m.exec(info)?.[1]);
  return Number.isFinite(mhz) && mhz > 0 ? Math.round(mhz * 1000) : FALLBACK_KHZ;
}
