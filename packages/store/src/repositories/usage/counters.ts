import { USAGE_COUNTERS, type UsageCounters } from '@svc/contract';

/** A value for each counter, by its name. */
export function countersOf<T>(
  value: (name: keyof UsageCounters) => T,
): Record<keyof UsageCounters, T> {
  return Object.fromEntries(USAGE_COUNTERS.map((name) => [name, value(name)])) as Record<
    keyof UsageCounters,
    T
  >;
}
