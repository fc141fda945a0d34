/** A request to stop the service. */
export interface StopRequest {
  readonly reason: string;
  /** Whether the sandboxes keep running for the next start. */
  readonly keepSandboxes: boolean;
}

/** Stops the service but not its sandboxes; sent by `svc down --keep-sandboxes`. */
export const KEEP_SANDBOXES_SIGNAL = 'SIGUSR2';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', KEEP_SANDBOXES_SIGNAL] as const;
/** Ctrl-C reaches the service twice, from the terminal and through npm, which counts as one request. */
const DUPLICATE_MS = 1_500;

/** Listens for the signals that stop a service. A second, later signal exits the process immediately. */
export class StopSignals {
  readonly #requested = Promise.withResolvers<StopRequest>();
  readonly #abort = new AbortController();
  readonly #handle = (signal: NodeJS.Signals) => this.#receive(signal);
  #first: number | undefined;
  #request: StopRequest | undefined;

  constructor() {
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

  [Symbol.dispose](): void {
    for (const signal of STOP_SIGNALS) process.off(signal, this.#handle);
  }

  #receive(signal: NodeJS.Signals): void {
    if (this.#first === undefined) {
      this.#first = performance.now();
      const request = { reason: signal, keepSandboxes: signal === KEEP_SANDBOXES_SIGNAL };
      this.#request = request;
      this.#requested.resolve(request);
      this.#abort.abort(new DOMException(`stopped by ${signal}`, 'AbortError'));
    } else if (performance.now() - this.#first > DUPLICATE_MS) {
      console.error('svc: second signal: exiting immediately; the next start cleans up');
      process.exit(1);
    }
  }
}
