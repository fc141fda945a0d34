import { setTimeout as sleep } from 'node:timers/promises';
import { type CaptureRequest, readViewUpdate } from '@svc/contract';
import { type Desktop, DesktopError } from '../desktop/index.ts';

/** Before the element server is asked again while it does not answer. */
const RETRY_MS = 1_000;

export interface LiveViewOptions {
  /** Undefined in a template without one. */
  readonly desktop: Desktop | undefined;
  /** Sends the answer to the request with this id: an update in base64. */
  readonly captured: (id: number, update: string) => void;
  /** Reports a failure that the desktop does not explain. */
  readonly onFault: (error: unknown) => void;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
}

/** Answers the worker's requests for pictures of the display, one at a time. Does nothing in between. */
export class LiveView {
  readonly #options: LiveViewOptions;
  #stop: AbortController | undefined;
  /** The number of the last update that was sent, after which the next one continues. */
  #since = 0;

  constructor(options: LiveViewOptions) {
    this.#options = options;
  }

  /** Sends what has changed, as soon as something has. Replaces a request that is not answered yet. */
  capture(request: CaptureRequest): void {
    this.stop();
    const { desktop, captured, onFault, signal } = this.#options;
    if (desktop === undefined) return;
    const stop = new AbortController();
    this.#stop = stop;
    const bounded = AbortSignal.any([stop.signal, signal]);
    const since = request.whole ? 0 : this.#since;
    changesOf(desktop, since, request.quality, bounded).then(
      ({ number, update }) => {
        if (bounded.aborted) return;
        this.#since = number;
        captured(request.id, update.toString('base64'));
      },
      (error) => {
        if (!bounded.aborted) onFault(error);
      },
    );
  }

  /** Withdraws a request that is not answered yet. */
  stop(): void {
    this.#stop?.abort(new Error('the pictures are no longer wanted'));
    this.#stop = undefined;
  }
}

/** Waits for changes, however long that takes. @throws the reason of the signal */
async function changesOf(desktop: Desktop, since: number, quality: number, signal: AbortSignal) {
  for (;;) {
    signal.throwIfAborted();
    try {
      const update = await desktop.changes(since, quality, signal);
      if (update.length === 0) continue;
      const number = readViewUpdate(update)?.number;
      if (number === undefined) throw new Error('the element server has sent no update of a view');
      return { number, update };
    } catch (error) {
      // Its programs are being started again.
      if (!(error instanceof DesktopError)) throw error;
      await sleep(RETRY_MS, undefined, { signal });
    }
  }
}
