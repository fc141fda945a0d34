/** Aborts after this many minutes, or with `signal`. A composite of `AbortSignal.any` may be collected before its timeout. */
export function endAfter(minutes: number, signal: AbortSignal): AbortSignal {
  const end = new AbortController();
  const timer = setTimeout(() => end.abort(), minutes * 60_000);
  const endNow = () => {
    clearTimeout(timer);
    end.abort();
  };
  if (signal.aborted) endNow();
  else signal.addEventListener('abort', endNow, { once: true });
  return end.signal;
}
