/**
 * Runs two functions concurrently; if one fails, the other is aborted. Settles only when both have settled, so that
 * nothing still starts while the caller cleans up. Rejects with the first failure.
 */
export async function allOrAbort<A, B>(
  signal: AbortSignal,
  first: (signal: AbortSignal) => Promise<A>,
  second: (signal: AbortSignal) => Promise<B>,
): Promise<[A, B]> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const abortOther = (error: unknown): never => {
    failed.abort(error);
    throw error;
  };
  const a = first(either).catch(abortOther);
  const b = second(either).catch(abortOther);
  await Promise.allSettled([a, b]);
  if (failed.signal.aborted) throw failed.signal.reason;
  return [await a, await b];
}
