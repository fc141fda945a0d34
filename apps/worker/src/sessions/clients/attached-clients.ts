import type { Duplex } from 'node:stream';
import { type Budget, sleep } from '@svc/service-kit/concurrency';
import type { TraceOrigin } from '@svc/service-kit/tracing';
import type { WebSocket } from 'ws';
import type { Clock } from '../../clock.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { StoredFrame } from '../journal/format.ts';
import type { Journal } from '../journal/journal.ts';
import type { DesktopView } from '../view/desktop-view.ts';
import { type FrameReceiver, SessionClient } from './session-client.ts';

const POLL_MS = 10;

export interface AttachedClientsOptions {
  readonly journal: Journal;
  readonly sandbox: Pick<Sandbox, 'connections'>;
  readonly clock: Clock;
  readonly slowConsumerMs: number;
  /** For what clients of the account have not read, in bytes. */
  readonly unsent: Budget;
  readonly view: DesktopView;
  /** Whether the tenant's rate allows a `tool_call` of the desktop now. */
  readonly mayUseDesktop: (tool: string) => boolean;
  readonly onFault: (error: unknown, what: string) => void;
}

/** A client's WebSocket and the socket below it. `afterSeq`: replays the frames after this number first. */
export interface ClientSocket {
  readonly ws: WebSocket;
  readonly socket: Duplex;
  readonly afterSeq?: number;
  /** Whether the client may control the desktop, and sees its pictures. */
  readonly controlsDesktop: boolean;
  /** Where its tasks belong in its trace. */
  readonly origin?: TraceOrigin | undefined;
}

/** The clients attached to one agent. */
export class AttachedClients {
  readonly #options: AttachedClientsOptions;
  readonly #clients = new Set<SessionClient>();
  #end: { readonly code: number; readonly reason: string } | undefined;

  constructor(options: AttachedClientsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Attaches a client: sends it `ready`, then the frames after `afterSeq` or only new ones. */
  attach(
    client: ClientSocket,
    ready: Readonly<Record<string, unknown>>,
    receiver: FrameReceiver,
  ): void {
    const { journal, sandbox } = this.#options;
    const attached = new SessionClient({ ...this.#options, ...client, receiver });
    this.#clients.add(attached);
    const detach = sandbox.connections.attach(attached);
    client.ws.once('close', () => {
      this.#clients.delete(attached);
      detach();
    });
    const { lastSeq, newestSeq } = journal;
    const jump = newestSeq < lastSeq ? { previous_seq: newestSeq } : {};
    attached.start({ ...ready, last_seq: lastSeq, ...jump });
    if (this.#end !== undefined) attached.finish(this.#end.code, this.#end.reason);
  }

  /** Closes every client once it has been sent every stored frame, and from now on every new one likewise. */
  finish(code: number, reason: string): void {
    this.#end = { code, reason };
    for (const client of this.#clients) client.finish(code, reason);
  }

  /** Sends a picture of the desktop to the clients that may see it. */
  showPicture(image: Buffer): void {
    for (const client of this.#clients) client.showPicture(image);
  }

  /** Sends frames that were just stored. */
  show(frames: readonly StoredFrame[]): void {
    for (const client of this.#clients) client.show(frames);
  }

  /** Settles when no client is far behind, after disconnecting those that still are after `ms` milliseconds. */
  async caughtUp(ms: number, signal: AbortSignal): Promise<void> {
    const start = performance.now();
    while (!signal.aborted && this.#behind().length > 0) {
      if (performance.now() - start > ms) {
        for (const client of this.#behind()) client.disconnectSlow();
      } else {
        await sleep(POLL_MS, signal);
      }
    }
  }

  #behind(): SessionClient[] {
    return [...this.#clients].filter((client) => client.isBehind);
  }
}
