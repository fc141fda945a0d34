import type { Shutdown } from '@svc/service-kit/process';
import { DUPLICATE_SIGNAL_MS } from '../process-lifetime.ts';

/** A request to stop the service. */
export interface StopRequest {
  readonly reason: string;
  /** Whether the sandboxes keep running for the next start. */
  readonly keepSandboxes: boolean;
}

/** Stops the service but not its sandboxes; sent by `svc down --keep-sandboxes`. */
export const KEEP_SANDBOXES_SIGNAL = 'SIGUSR2';

/** Stops the service and ends its sandboxes, as Ctrl-C does; sent by `svc down` and `svc worker drain`. */
export const END_SANDBOXES_SIGNAL = 'SIGINT';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', KEEP_SANDBOXES_SIGNAL] as const;

/**
 * Listens for the signals that stop a service. The first one decides whether the sandboxes stay. Each later one ends a
 * wait for requests in progress or, if there is none, exits the process immediately.
 */
export class StopSignals {
  readonly #keepsSandboxes: (signal: NodeJS.Signals) => boolean;
  readonly #requested = Promise.withResolvers<StopRequest>();
  readonly #abort = new AbortController();
  readonly #handle = (signal: NodeJS.Signals) => this.#receive(signal);
  /** When the last signal arrived that counts, in monotonic milliseconds. */
  #last: number | undefined;
  #shutdown: Pick<Shutdown, 'hurry'> | undefined;
  #request: StopRequest | undefined;

  /** `keepsSandboxes` says which signals leave the sandboxes running; default: {@link KEEP_SANDBOXES_SIGNAL}. */
  constructor(
    keepsSandboxes: (signal: NodeJS.Signals) => boolean = (signal) =>
      signal === KEEP_SANDBOXES_SIGNAL,
  ) {
    this.#keepsSandboxes = keepsSandboxes;
    for (const signal of STOP_SIGNALS) process.on(signal, this.#handle);
  }

  /** Aborts on the first signal. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The stop request; undefined before the first signal. */
  get request(): StopRequest | undefined {
    return this.#request;
  }

  /** Resolves on the first signal. */
  get requested(): Promise<StopRequest> {
    return this.#requested.promise;
  }

  /** Later signals end the drain of this shutdown. */
  hurries(shutdown: Pick<Shutdown, 'hurry'>): void {
    this.#shutdown = shutdown;
  }

  /** Stops the service and ends its sandboxes, unless a stop was requested before. */
  endSandboxes(reason: string): void {
    if (this.#request === undefined) this.#stop({ reason, keepSandboxes: false });
  }

  [Symbol.dispose](): void {
    for (const signal of STOP_SIGNALS) process.off(signal, this.#handle);
  }

  #stop(request: StopRequest): void {
    this.#request = request;
    this.#requested.resolve(request);
    this.#abort.abort(new DOMException(`stopped by ${request.reason}`, 'AbortError'));
  }

  #receive(signal: NodeJS.Signals): void {
    const now = performance.now();
    if (this.#last !== undefined && now - this.#last <= DUPLICATE_SIGNAL_MS) return;
    this.#last = now;
    if (this.#request === undefined) {
      this.#stop({ reason: signal, keepSandboxes: this.#keepsSandboxes(signal) });
    } else if (this.#shutdown?.hurry()) {
      console.error('svc: another signal: no longer waiting for requests in progress');
    } else {
      console.error('svc: another signal: exiting immediately; the next start cleans up');
      process.exit(1);
    }
  }
}
