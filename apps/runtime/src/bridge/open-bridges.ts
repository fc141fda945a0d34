import { once } from 'node:events';
import type { WebSocket } from 'ws';
import type { RuntimeMetrics } from '../metrics.ts';
import { Bridge, type BridgeOptions } from './bridge.ts';
import { type CloseReason, SHUTTING_DOWN } from './close-codes.ts';

interface Entry {
  readonly client: WebSocket;
  readonly bridge: Bridge;
}

/** The connections that are open. */
export class OpenBridges {
  readonly #entries = new Set<Entry>();
  readonly #bounds: BridgeOptions['bounds'];
  readonly #metrics: RuntimeMetrics;

  constructor(bounds: BridgeOptions['bounds'], metrics: RuntimeMetrics) {
    this.#bounds = bounds;
    this.#metrics = metrics;
  }

  /** Carries frames between the two until one ends; `onClosed` is called with how the client's connection did. */
  open(client: WebSocket, worker: WebSocket, onClosed: (end: CloseReason) => void): void {
    const { connections, closed } = this.#metrics;
    connections.inc();
    const bridge = new Bridge({ client, worker, bounds: this.#bounds, metrics: this.#metrics });
    const entry = { client, bridge };
    this.#entries.add(entry);
    const remove = (end: CloseReason) => {
      if (!this.#entries.delete(entry)) return;
      connections.dec();
      closed.inc({ code: String(end.code) });
      onClosed(end);
    };
    client.once('close', (code, reason) => {
      // Whoever does not answer is cut, which says nothing of why.
      remove(bridge.parting ?? { code, reason: reason.toString() });
    });
    if (client.readyState === client.CLOSED) remove({ code: 1006, reason: '' });
  }

  /** Parts from every client, and cuts those that have not answered after `graceMs`. */
  async closeAll(graceMs: number): Promise<void> {
    const entries = [...this.#entries];
    const ends = entries.map(({ client }) => once(client, 'close'));
    for (const { bridge } of entries) bridge.close(SHUTTING_DOWN);
    const cut = setTimeout(() => {
      for (const { client } of entries) client.terminate();
    }, graceMs);
    await Promise.all(ends);
    clearTimeout(cut);
  }
}
