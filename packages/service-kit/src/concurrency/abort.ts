/**
 * Settles like `promise`, or rejects with the signal's reason as soon as the signal aborts.
 * It does not stop the work behind `promise`: pass that work the signal too if it can be cancelled.
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  // A promise abandoned by the abort may still reject.
  promise.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Whether `promise` resolves or rejects within `ms` milliseconds. Never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  const timer = Promise.withResolvers<boolean>();
  const handle = setTimeout(() => timer.resolve(false), ms);
  try {
    return await Promise.race([settled, timer.promise]);
  } finally {
    clearTimeout(handle);
  }
}
