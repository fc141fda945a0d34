import type { RawData, WebSocket } from 'ws';
import type { RuntimeMetrics } from '../metrics.ts';
import type { RuntimeBounds } from '../options.ts';
import { bytesOf, errorFrame, frameProblem } from './client-frame.ts';
import {
  type CloseReason,
  closeOfWorker,
  KEEPALIVE_TIMEOUT,
  SLOW_CONSUMER,
  UPSTREAM_UNAVAILABLE,
} from './close-codes.ts';
import { keepAlive } from './keepalive.ts';
import { Outlet } from './outlet.ts';
import { partFrom } from './part-from.ts';

export interface BridgeOptions {
  readonly client: WebSocket;
  /** Connected and paused. */
  readonly worker: WebSocket;
  readonly bounds: Pick<RuntimeBounds, 'keepaliveIntervalMs' | 'stalledMs' | 'closeGraceMs'>;
  readonly metrics: RuntimeMetrics;
}

/**
 * Carries frames between one client and its session's worker until either side ends. Each side is read only as fast
 * as the other takes, so that neither can fill this process's memory.
 */
export class Bridge {
  readonly #options: BridgeOptions;
  readonly #toClient: Outlet;
  readonly #toWorker: Outlet;
  readonly #stopPings: readonly (() => void)[];
  #isClosing = false;
  #parting: CloseReason | undefined;

  constructor(options: BridgeOptions) {
    this.#options = options;
    const { client, worker, bounds } = options;
    const { keepaliveIntervalMs: intervalMs, stalledMs } = bounds;
    const events = { onFull: () => this.#balance(), onRoom: () => this.#balance() };
    this.#toClient = new Outlet(client, stalledMs, {
      ...events,
      onStalled: () => this.close(SLOW_CONSUMER),
    });
    this.#toWorker = new Outlet(worker, stalledMs, {
      ...events,
      onStalled: () => worker.terminate(),
    });
    client.on('message', (data, isBinary) => this.#fromClient(data, isBinary));
    client.on('error', () => undefined);
    client.on('close', () => this.#clientClosed());
    worker.on('message', (data, isBinary) => this.#fromWorker(data, isBinary));
    worker.on('error', () => undefined);
    worker.on('close', (code, reason) => this.#workerClosed(code, reason.toString()));
    this.#stopPings = [
      keepAlive(client, {
        intervalMs,
        isPaused: () => client.isPaused,
        onTimeout: () => this.close(KEEPALIVE_TIMEOUT),
      }),
      keepAlive(worker, {
        intervalMs,
        isPaused: () => worker.isPaused,
        onTimeout: () => worker.terminate(),
      }),
    ];
    worker.resume();
    // Either side may have ended before anybody listened.
    if (worker.readyState === worker.CLOSED) this.close(UPSTREAM_UNAVAILABLE);
    if (client.readyState === client.CLOSED) this.#clientClosed();
  }

  /** What the client was parted from with, whether it has heard it or not; undefined when it left by itself. */
  get parting(): CloseReason | undefined {
    return this.#parting;
  }

  /** Tells the client why and parts from it; cut when it does not answer in time. */
  close({ code, reason }: CloseReason): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const { client, worker, bounds } = this.#options;
    if (client.readyState === client.OPEN) this.#parting = { code, reason };
    for (const stop of this.#stopPings) stop();
    this.#toClient.end();
    this.#toWorker.end();
    partFrom(client, { code, reason }, bounds.closeGraceMs);
    partFrom(worker, { code: 1000, reason: '' }, bounds.closeGraceMs);
  }

  #fromClient(data: RawData, isBinary: boolean): void {
    if (this.#isClosing) return;
    const bytes = bytesOf(data);
    const problem = frameProblem(bytes, isBinary);
    if (problem !== undefined) {
      this.#toClient.send(errorFrame(problem));
      return;
    }
    this.#options.metrics.frames.inc({ direction: 'to_worker' });
    this.#toWorker.send(bytes);
  }

  #fromWorker(data: RawData, isBinary: boolean): void {
    if (this.#isClosing) return;
    this.#options.metrics.frames.inc({ direction: 'to_client' });
    this.#toClient.send(bytesOf(data), isBinary);
  }

  #clientClosed(): void {
    this.close({ code: 1000, reason: '' });
  }

  #workerClosed(code: number, reason: string): void {
    const end = closeOfWorker(code, reason);
    // A worker gives up on whoever does not take what it sends; that is the client's doing, not its failure.
    const isSlow = end === UPSTREAM_UNAVAILABLE && this.#toClient.isFull;
    this.close(isSlow ? SLOW_CONSUMER : end);
  }

  /** Reads from each side exactly when what it says has room. */
  #balance(): void {
    if (this.#isClosing) return;
    const { client, worker } = this.#options;
    // What a client is told about its own frames goes to itself, so a client that does not read is not read either.
    setPaused(client, this.#toClient.isFull || this.#toWorker.isFull);
    setPaused(worker, this.#toClient.isFull);
  }
}

function setPaused(socket: WebSocket, paused: boolean): void {
  if (paused === socket.isPaused) return;
  if (paused) socket.pause();
  else socket.resume();
}
