/**
 * Runs both side by side; a failure of one aborts the other. Both have settled when this settles, so
 * that nothing starts behind the back of a clean-up.
 */
export async function together<A, B>(
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
