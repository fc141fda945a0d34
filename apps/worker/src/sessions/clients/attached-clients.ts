import { sleep } from '@svc/service-kit/concurrency';
import type { StoredFrame } from '../journal/format.ts';
import type { SessionClient } from './session-client.ts';

const POLL_MS = 10;

/** The clients that are attached to one session. */
export class AttachedClients {
  readonly #clients = new Set<SessionClient>();

  get size(): number {
    return this.#clients.size;
  }

  add(client: SessionClient): void {
    this.#clients.add(client);
  }

  delete(client: SessionClient): void {
    this.#clients.delete(client);
  }

  show(frames: readonly StoredFrame[]): void {
    for (const client of this.#clients) client.show(frames);
  }

  /** Settles when nobody is far behind; who stays behind for `ms` milliseconds is disconnected. */
  async caughtUp(ms: number, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    while (!signal.aborted && this.#behind().length > 0) {
      if (performance.now() - start > ms) for (const client of this.#behind()) client.giveUp();
      else await sleep(POLL_MS, signal);
    }
  }

  #behind(): SessionClient[] {
    return [...this.#clients].filter((client) => client.isBehind);
  }
}
