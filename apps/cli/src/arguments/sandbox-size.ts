import { LIMITS } from '@svc/contract';
import { ArgumentError, integerBetween } from './parsers.ts';

const MIB_PER_UNIT: Readonly<Record<string, number>> = { '': 1, m: 1, mib: 1, g: 1024, gib: 1024 };

/** Parses the number of virtual CPUs. */
export const parseVcpu = integerBetween(LIMITS.vcpuMin, LIMITS.vcpuMax, '--vcpu 2');
/** Parses the size of a sandbox's memory into MiB. */
export const parseMemory = sizeBetween(LIMITS.memoryMibMin, LIMITS.memoryMibMax, '--memory 2G');
/** Parses the size of a sandbox's disk into MiB. */
export const parseDisk = sizeBetween(LIMITS.diskMibMin, LIMITS.diskMibMax, '--disk 8G');

/** Returns a parser for sizes such as `512`, `512M` or `2GiB`; limits and result are in MiB. */
function sizeBetween(min: number, max: number, example: string): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
    const unit = MIB_PER_UNIT[(match?.[2] ?? '?').toLowerCase()];
    const mib = unit === undefined ? Number.NaN : Number(match?.[1]) * unit;
    if (Number.isInteger(mib) && mib >= min && mib <= max) return mib;
    throw new ArgumentError(
      `"${text}" is not a size in range`,
      `use mebibytes or a unit, from ${min}M to ${max}M`,
      example,
    );
  };
}
