import type { Budget } from '@svc/service-kit/concurrency';
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
import { closeSocket } from './close-socket.ts';
import { keepAlive } from './keepalive.ts';
import { SendBuffer } from './send-buffer.ts';

export interface WebSocketProxyOptions {
  readonly client: WebSocket;
  /** Open and paused. */
  readonly worker: WebSocket;
  readonly bounds: Pick<
    RuntimeBounds,
    'keepaliveIntervalMs' | 'workerKeepaliveIntervalMs' | 'stalledMs' | 'closeGraceMs'
  >;
  /** For frames that a side has not read, shared by the connections of a tenant, in bytes. */
  readonly unsent: Budget;
  readonly metrics: RuntimeMetrics;
}

/**
 * Forwards frames between a client and its session's worker until either side closes. Each side is read only as fast as
 * the other accepts, so that neither can exhaust this process's memory.
 */
export class WebSocketProxy {
  readonly #options: WebSocketProxyOptions;
  readonly #toClient: SendBuffer;
  readonly #toWorker: SendBuffer;
  readonly #stopPings: readonly (() => void)[];
  #isClosing = false;
  #sentClose: CloseReason | undefined;

  constructor(options: WebSocketProxyOptions) {
    this.#options = options;
    const { client, worker, bounds, unsent: budget } = options;
    const { keepaliveIntervalMs, workerKeepaliveIntervalMs, stalledMs } = bounds;
    const balance = () => this.#balance();
    const buffer = { stalledMs, budget, onFull: balance, onDrained: balance };
    this.#toClient = new SendBuffer(client, {
      ...buffer,
      onStalled: () => this.close(SLOW_CONSUMER),
    });
    this.#toWorker = new SendBuffer(worker, {
      ...buffer,
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
        intervalMs: keepaliveIntervalMs,
        isPaused: () => client.isPaused,
        onTimeout: () => this.close(KEEPALIVE_TIMEOUT),
      }),
      keepAlive(worker, {
        intervalMs: workerKeepaliveIntervalMs,
        isPaused: () => worker.isPaused,
        onTimeout: () => worker.terminate(),
      }),
    ];
    worker.resume();
    // Either side may have closed before its listeners were added.
    if (worker.readyState === worker.CLOSED) this.close(UPSTREAM_UNAVAILABLE);
    if (client.readyState === client.CLOSED) this.#clientClosed();
  }

  /** The close sent to the client, even if it was not answered; undefined if the client closed first. */
  get sentClose(): CloseReason | undefined {
    return this.#sentClose;
  }

  /** Closes both sides, with this code and reason for the client. Terminates a side that does not answer in time. */
  close({ code, reason }: CloseReason): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const { client, worker, bounds } = this.#options;
    if (client.readyState === client.OPEN) this.#sentClose = { code, reason };
    for (const stop of this.#stopPings) stop();
    this.#toClient.end();
    this.#toWorker.end();
    closeSocket(client, { code, reason }, bounds.closeGraceMs);
    closeSocket(worker, { code: 1000, reason: '' }, bounds.closeGraceMs);
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
    // A worker drops a reader that is too slow. Here the client is the cause, not a failure of the worker.
    const isSlow = end === UPSTREAM_UNAVAILABLE && this.#toClient.isFull;
    this.close(isSlow ? SLOW_CONSUMER : end);
  }

  /** Pauses each side whose frames cannot be forwarded at the moment, and resumes the others. */
  #balance(): void {
    if (this.#isClosing) return;
    const { client, worker } = this.#options;
    // Errors about a client's frames go back to the client, so one that does not read is not read either.
    setPaused(client, this.#toClient.isFull || this.#toWorker.isFull);
    setPaused(worker, this.#toClient.isFull);
  }
}

function setPaused(socket: WebSocket, paused: boolean): void {
  if (paused === socket.isPaused) return;
  if (paused) socket.pause();
  else socket.resume();
}
