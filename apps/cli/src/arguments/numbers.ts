import { LIMITS } from '@svc/contract';
import { ArgumentError } from './argument-error.ts';

/** A parser of whole numbers from `min` to `max`. */
export function integerBetween(
  min: number,
  max: number,
  example: string,
): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new ArgumentError(
      `"${text}" is not a whole number in range`,
      `use a whole number from ${min} to ${max}`,
      example,
    );
  };
}

export const parseVcpu = integerBetween(LIMITS.vcpuMin, LIMITS.vcpuMax, '--vcpu 2');

const UNITS: Readonly<Record<string, number>> = { '': 1, m: 1, mib: 1, g: 1024, gib: 1024 };

/** A parser of sizes such as `512`, `512M` or `2GiB`, giving mebibytes. */
function sizeBetween(min: number, max: number, example: string): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text);
    const unit = UNITS[(match?.[2] ?? '?').toLowerCase()];
    const mib = unit === undefined ? Number.NaN : Number(match?.[1]) * unit;
    if (Number.isInteger(mib) && mib >= min && mib <= max) return mib;
    throw new ArgumentError(
      `"${text}" is not a size in range`,
      `use mebibytes or a unit, from ${min}M to ${max}M`,
      example,
    );
  };
}

/** Memory of a sandbox, in mebibytes. */
export const parseMemory = sizeBetween(LIMITS.memoryMibMin, LIMITS.memoryMibMax, '--memory 2G');
/** Disk of a sandbox, in mebibytes. */
export const parseDisk = sizeBetween(LIMITS.diskMibMin, LIMITS.diskMibMax, '--disk 8G');
