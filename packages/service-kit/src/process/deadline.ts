/** A signal with a timer behind it, which disposing gives up: work that may end long before its time must not keep it. */
export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * A signal that aborts when `parent` does, or after `ms`, whichever comes first. Its timer holds it: a
 * composite of AbortSignal.any and AbortSignal.timeout can be collected as garbage before it fires.
 */
export function openDeadline(parent: AbortSignal | undefined, ms: number): Deadline {
  const controller = new AbortController();
  const giveUp = () => {
    clearTimeout(timer);
    parent?.removeEventListener('abort', follow);
  };
  const settle = (reason: unknown) => {
    giveUp();
    controller.abort(reason);
  };
  const follow = () => settle(parent?.reason);
  const timer = setTimeout(() => settle(timedOut(ms)), ms);
  timer.unref();
  if (parent?.aborted) follow();
  else parent?.addEventListener('abort', follow, { once: true });
  return { signal: controller.signal, [Symbol.dispose]: giveUp };
}

/** The signal of {@link openDeadline} alone, for a time short enough to run out by itself. */
export function withDeadline(parent: AbortSignal | undefined, ms: number): AbortSignal {
  return openDeadline(parent, ms).signal;
}

function timedOut(ms: number): DOMException {
  return new DOMException(`The operation took longer than ${ms} ms`, 'TimeoutError');
}
