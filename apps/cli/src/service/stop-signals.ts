/** How a service is asked to end. */
export interface StopRequest {
  readonly reason: string;
  /** Leave the sandboxes alive for the next start. */
  readonly keepSandboxes: boolean;
}

/** Ends the service and leaves its sandboxes alive; sent by `svc down --keep-sandboxes`. */
export const KEEP_SANDBOXES_SIGNAL = 'SIGUSR2';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', KEEP_SANDBOXES_SIGNAL] as const;
/** Ctrl-C reaches the service twice, from the terminal and through npm: one wish, not two. */
const ECHO_MS = 1_500;

/** Listens for the signals that end a service. A later one, from a person losing patience, ends the process at once. */
export class StopSignals {
  readonly #wished = Promise.withResolvers<StopRequest>();
  readonly #begun = new AbortController();
  readonly #handle = (signal: NodeJS.Signals) => this.#receive(signal);
  #first: number | undefined;
  #request: StopRequest | undefined;

  constructor() {
    for (const signal of STOP_SIGNALS) process.on(signal, this.#handle);
  }

  /** Aborts when the end is wished. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  /** The wish, once there is one. */
  get request(): StopRequest | undefined {
    return this.#request;
  }

  /** Settles when the end is wished. */
  get wished(): Promise<StopRequest> {
    return this.#wished.promise;
  }

  [Symbol.dispose](): void {
    for (const signal of STOP_SIGNALS) process.off(signal, this.#handle);
  }

  #receive(signal: NodeJS.Signals): void {
    if (this.#first === undefined) {
      this.#first = performance.now();
      const request = { reason: signal, keepSandboxes: signal === KEEP_SANDBOXES_SIGNAL };
      this.#request = request;
      this.#wished.resolve(request);
      this.#begun.abort(new DOMException(`stopped by ${signal}`, 'AbortError'));
    } else if (performance.now() - this.#first > ECHO_MS) {
      console.error('svc: second signal: ending at once; the next start cleans up');
      process.exit(1);
    }
  }
}
