import { LIMITS, type SandboxSize } from '@svc/contract';
import type { Command } from 'commander';
import { ArgumentError, integerBetween } from './parsers.ts';

const MIB_PER_UNIT: Readonly<Record<string, number>> = { '': 1, m: 1, mib: 1, g: 1024, gib: 1024 };

/** Parses the number of virtual CPUs. */
export const parseVcpu = integerBetween(LIMITS.vcpuMin, LIMITS.vcpuMax, '--vcpu 2');
/** Parses the size of a sandbox's memory into MiB. */
export const parseMemory = sizeBetween(LIMITS.memoryMibMin, LIMITS.memoryMibMax, '--memory 2G');
/** Parses the size of a sandbox's disk into MiB. */
export const parseDisk = sizeBetween(LIMITS.diskMibMin, LIMITS.diskMibMax, '--disk 8G');

/** The options of a command that has {@link addSizeOptions}. */
export interface SizeOptions {
  readonly vcpu?: number;
  readonly memory?: number;
  readonly disk?: number;
}

/** Adds the options for the size of a sandbox. */
export function addSizeOptions(command: Command): Command {
  return command
    .option('--vcpu <n>', 'virtual CPUs, rounded up to 1, 2, 4 or 8', parseVcpu)
    .option(
      '--memory <size>',
      'memory, as in 512M or 2G, rounded up to a power of two',
      parseMemory,
    )
    .option('--disk <size>', 'disk, as in 8G', parseDisk);
}

/** The size fields of a create request. */
export function requestedSize({ vcpu, memory, disk }: SizeOptions): SandboxSize {
  return {
    ...(vcpu === undefined ? {} : { vcpu }),
    ...(memory === undefined ? {} : { memory_mib: memory }),
    ...(disk === undefined ? {} : { disk_mib: disk }),
  };
}

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
