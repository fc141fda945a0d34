import type { Duplex } from 'node:stream';

const STALL_MS = 60_000;
/** How long a peer may take to close a connection whose other side is gone, after it has received everything. */
const LINGER_MS = 2_000;

export interface JoinOptions {
  /** Cuts both connections when it aborts. */
  readonly signal: AbortSignal;
  /** Both are cut when no byte has moved for this long, in milliseconds. */
  readonly idleMs: number;
  /** Both are cut when one side reads nothing of what waits for it for this long. Default one minute. */
  readonly stallMs?: number;
}

/**
 * Copies bytes both ways between two connections, as fast as the slower one reads. The end of one side ends the other,
 * once it has received what was sent to it. Resolves, and never rejects, when both are closed.
 */
export async function joinConnections(a: Duplex, b: Duplex, options: JoinOptions): Promise<void> {
  const { signal, idleMs, stallMs = STALL_MS } = options;
  let movedAt = performance.now();
  const moved = (): void => {
    movedAt = performance.now();
  };
  const cut = (): void => {
    a.destroy();
    b.destroy();
  };
  const isWaiting = (): boolean => a.writableLength > 0 || b.writableLength > 0;
  const check = (): void => {
    const limit = isWaiting() ? Math.min(stallMs, idleMs) : idleMs;
    if (performance.now() - movedAt >= limit) cut();
  };
  const timer = setInterval(check, Math.min(stallMs, idleMs) / 2);
  signal.addEventListener('abort', cut, { once: true });
  const closed = [join(a, b, moved), join(b, a, moved)];
  if (signal.aborted) cut();
  await Promise.all(closed);
  signal.removeEventListener('abort', cut);
  clearInterval(timer);
}

/** Copies one way. Settles when the source is closed. */
function join(source: Duplex, sink: Duplex, moved: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  source.on('data', moved).on('drain', moved);
  // `close` follows, and a failure needs no report: the other side sees an end.
  source.on('error', () => source.destroy());
  source.once('close', () => {
    if (source.readableEnded) closeSoon(sink);
    else sink.destroy();
    resolve();
  });
  source.pipe(sink);
  if (source.destroyed) {
    sink.destroy();
    resolve();
  }
  return promise;
}

/** Ends a connection, and cuts it if its peer does not end it too: a hostile guest could keep it open. */
function closeSoon(connection: Duplex): void {
  connection.end(() => {
    const timer = setTimeout(() => connection.destroy(), LINGER_MS);
    connection.once('close', () => clearTimeout(timer));
    if (connection.closed) clearTimeout(timer);
  });
}
