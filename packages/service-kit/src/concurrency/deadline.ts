/** A signal backed by a timer. Dispose it when the work ends early, so that the timer does not retain the work. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * A signal that aborts with `parent` or after `ms` milliseconds, whichever comes first. The timer retains the
 * signal; a composite of AbortSignal.any and AbortSignal.timeout can be garbage-collected before it fires.
 */
export function openDeadline(parent: AbortSignal | undefined, ms: number): Deadline {
  const controller = new AbortController();
  const release = () => {
    clearTimeout(timer);
    parent?.removeEventListener('abort', follow);
  };
  const settle = (reason: unknown) => {
    release();
    controller.abort(reason);
  };
  const follow = () => settle(parent?.reason);
  const timer = setTimeout(() => settle(timedOut(ms)), ms);
  timer.unref();
  if (parent?.aborted) follow();
  else parent?.addEventListener('abort', follow, { once: true });
  return { signal: controller.signal, [Symbol.dispose]: release };
}

/** The signal of {@link openDeadline}, for deadlines so short that the timer need not be disposed. */
export function withDeadline(parent: AbortSignal | undefined, ms: number): AbortSignal {
  return openDeadline(parent, ms).signal;
}

function timedOut(ms: number): DOMException {
  return new DOMException(`The operation took longer than ${ms} ms`, 'TimeoutError');
}
