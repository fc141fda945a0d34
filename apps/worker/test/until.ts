import { vi } from 'vitest';

/** Waits until `check` no longer throws, long enough for a loaded machine. */
export function until<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 20_000, interval: 10 });
}
