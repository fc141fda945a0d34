import type { UsageCounters } from '@svc/contract';

/** Prices in whole micro-dollars. */
export interface PriceTable {
  readonly cpuSecond: number;
  /** Of a GiB of memory that a sandbox has, used or not, for one second. */
  readonly gibSecond: number;
  readonly toolCall: number;
}

/** Parts of a micro-dollar in which a cost is a whole number: counters are in milliseconds, memory is in MiB. */
const PARTS = 1_000n * 1_024n;

/** A cost, and the rest of it below one micro-dollar, in parts of which a micro-dollar has 1,024,000. */
export interface Cost {
  readonly microusd: bigint;
  readonly rest: number;
}

/**
 * The cost of a difference between two counters. Costs are rounded down to whole micro-dollars, and the rest is carried
 * to the next difference of the same sandbox, so the sum of all costs is the price of the last counters, rounded down
 * once. Exact: only integers are used.
 */
export function costOf(
  used: UsageCounters,
  memoryMib: number,
  prices: PriceTable,
  carried: number,
): Cost {
  const parts =
    BigInt(used.cpu_ms) * BigInt(prices.cpuSecond) * 1_024n +
    BigInt(used.wall_ms) * BigInt(memoryMib) * BigInt(prices.gibSecond) +
    BigInt(used.tool_calls) * BigInt(prices.toolCall) * PARTS +
    BigInt(carried);
  return { microusd: parts / PARTS, rest: Number(parts % PARTS) };
}
