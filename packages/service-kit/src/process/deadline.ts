/**
 * A signal that aborts when `parent` does, or after `ms`, whichever comes first. Its timer holds it: a
 * composite of AbortSignal.any and AbortSignal.timeout can be collected as garbage before it fires.
 */
export function withDeadline(parent: AbortSignal | undefined, ms: number): AbortSignal {
  const controller = new AbortController();
  const settle = (reason: unknown) => {
    clearTimeout(timer);
    parent?.removeEventListener('abort', follow);
    controller.abort(reason);
  };
  const follow = () => settle(parent?.reason);
  const timer = setTimeout(() => settle(timedOut(ms)), ms);
  timer.unref();
  if (parent?.aborted) follow();
  else parent?.addEventListener('abort', follow, { once: true });
  return controller.signal;
}

function timedOut(ms: number): DOMException {
  return new DOMException(`The operation took longer than ${ms} ms`, 'TimeoutError');
}
