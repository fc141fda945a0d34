import { openDeadline } from '@svc/service-kit/concurrency';

const CALL_MS = 60_000;

/** Makes a call to the object store that ends within a minute, for work that nobody waits for. */
export async function within<T>(
  signal: AbortSignal,
  call: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  using deadline = openDeadline(signal, CALL_MS);
  return call(deadline.signal);
}
