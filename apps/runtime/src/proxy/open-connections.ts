import { once } from 'node:events';
import type { Budget } from '@svc/service-kit/concurrency';
import type { WebSocket } from 'ws';
import type { RuntimeMetrics } from '../metrics.ts';
import { type CloseReason, SHUTTING_DOWN } from './close-codes.ts';
import { WebSocketProxy, type WebSocketProxyOptions } from './websocket-proxy.ts';

interface Entry {
  readonly client: WebSocket;
  readonly proxy: WebSocketProxy;
}

/** The open session connections. */
export class OpenConnections {
  readonly #entries = new Set<Entry>();
  readonly #bounds: WebSocketProxyOptions['bounds'];
  readonly #metrics: RuntimeMetrics;

  constructor(bounds: WebSocketProxyOptions['bounds'], metrics: RuntimeMetrics) {
    this.#bounds = bounds;
    this.#metrics = metrics;
  }

  /**
   * Forwards frames between the two until one closes.
   * @param unsent for frames that a side has not read, in bytes
   * @param onClosed receives the code and reason of the client's close
   */
  open(
    client: WebSocket,
    worker: WebSocket,
    unsent: Budget,
    onClosed: (end: CloseReason) => void,
  ): void {
    const { connections, closed } = this.#metrics;
    connections.inc();
    const proxy = new WebSocketProxy({
      client,
      worker,
      bounds: this.#bounds,
      unsent,
      metrics: this.#metrics,
    });
    const entry = { client, proxy };
    this.#entries.add(entry);
    const remove = (end: CloseReason) => {
      if (!this.#entries.delete(entry)) return;
      connections.dec();
      closed.inc({ code: String(end.code) });
      onClosed(end);
    };
    client.once('close', (code, reason) => {
      // The code of a terminated connection does not tell why it was closed.
      remove(proxy.sentClose ?? { code, reason: reason.toString() });
    });
    if (client.readyState === client.CLOSED) remove({ code: 1006, reason: '' });
  }

  /** Closes every client, and terminates those that do not answer within `graceMs`. */
  async closeAll(graceMs: number): Promise<void> {
    const entries = [...this.#entries];
    const ends = entries.map(({ client }) => once(client, 'close'));
    for (const { proxy } of entries) proxy.close(SHUTTING_DOWN);
    const cut = setTimeout(() => {
      for (const { client } of entries) client.terminate();
    }, graceMs);
    await Promise.all(ends);
    clearTimeout(cut);
  }
}
