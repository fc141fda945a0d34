import { type DestroyOrder, WORKER_TIMES, type WorkerSandbox } from '@svc/contract';
import { backoffMs, sleep, Wakeable } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import type { ControlPlaneClient } from './control-plane-client.ts';
import { ControlPlaneError } from './control-plane-transport.ts';
import { EventQueue } from './event-queue.ts';
import type { Reporter } from './report.ts';

/** How this worker introduces itself. */
export interface WorkerIdentity {
  readonly worker_id: string;
  readonly url: string;
  readonly certificate: string;
  readonly version: string;
}

export interface LinkOptions {
  readonly client: ControlPlaneClient;
  readonly reporter: Reporter;
  /** Asked at each registration: the URL is known once the server listens. */
  readonly identity: () => WorkerIdentity;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  /** Carries out orders to destroy; must not throw or wait. */
  readonly onOrders: (orders: readonly DestroyOrder[]) => void;
  /** Longest pause between attempts to register, in ms. */
  readonly maxBackoffMs?: number;
}

const EVENT_RETRY_MS = 1_000;
const MAX_BACKOFF_MS = 10_000;

/**
 * Keeps the control plane informed: registers, beats, and sends changes at once. One call at a time, so that
 * reports arrive in the order they were made. A control plane that is away is waited for without end;
 * the VMs do not notice.
 */
export class ControlPlaneLink {
  readonly #options: LinkOptions;
  readonly #events = new EventQueue();
  readonly #wakeable = new Wakeable();
  readonly #registered = Promise.withResolvers<void>();
  #heartbeatMs: number = WORKER_TIMES.heartbeatIntervalMs;
  #lost = false;
  /** Set when the control plane does not know this worker (any more). */
  #unknown = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#registered.promise.catch(() => undefined);
  }

  /** Settles with the first registration; rejects when the worker ends before that. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  /** Queues the record of a sandbox that has changed. */
  push(record: WorkerSandbox): void {
    this.#events.push(record);
    this.#wakeable.wake();
  }

  /** Runs until `signal` aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#register(signal);
      await this.#beat(signal);
    }
    this.#registered.reject(new Error('the worker ended before it was registered'));
  }

  /** Sends what is still queued, once, within `ms` milliseconds; for the end of the worker. */
  async flush(ms: number): Promise<void> {
    const deadline = AbortSignal.timeout(ms);
    while (this.#events.size > 0 && !deadline.aborted && !this.#unknown) {
      if (!(await this.#sendEvents(deadline))) return;
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { client, reporter, identity, onOrders, logger, maxBackoffMs } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        const report = await reporter.make(true);
        const { free: _free, ...body } = report.body;
        const answer = await client.register({ ...identity(), ...body }, signal);
        report.acknowledge();
        this.#heartbeatMs = answer.heartbeat_interval_ms;
        this.#found('registered with the control plane');
        this.#unknown = false;
        this.#registered.resolve();
        onOrders(answer.destroy);
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#missed(error, 'cannot register with the control plane; trying on');
        logger.debug({ err: error, attempt }, 'registration failed');
        await sleep(
          backoffMs(attempt, { baseMs: 250, maxMs: maxBackoffMs ?? MAX_BACKOFF_MS }),
          signal,
        );
      }
    }
  }

  /** Beats and sends events until the control plane asks for a registration. */
  async #beat(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let next = clock.monotonic() + this.#heartbeatMs;
    while (!signal.aborted) {
      await this.#wakeable.wait(Math.max(0, next - clock.monotonic()), signal);
      if (signal.aborted) return;
      if (this.#events.size > 0 && !(await this.#sendEvents(signal))) {
        await sleep(EVENT_RETRY_MS, signal);
      }
      if (clock.monotonic() >= next) {
        await this.#heartbeat(signal);
        next = clock.monotonic() + this.#heartbeatMs;
      }
      if (this.#unknown) return;
    }
  }

  async #heartbeat(signal: AbortSignal): Promise<void> {
    const { client, reporter, onOrders } = this.#options;
    try {
      const report = await reporter.make(false);
      const answer = await client.heartbeat(report.body, signal);
      report.acknowledge();
      this.#found('the control plane answers again');
      onOrders(answer.destroy);
    } catch (error) {
      if (signal.aborted) return;
      if (isUnknownWorker(error)) this.#unknown = true;
      else this.#missed(error, 'the control plane does not answer; sandboxes go on without it');
    }
  }

  /** Sends one batch; false when it did not arrive and stays queued. */
  async #sendEvents(signal: AbortSignal): Promise<boolean> {
    const batch = this.#events.batch();
    try {
      await this.#options.client.sendEvents(batch, signal);
      this.#events.sent(batch);
      if (this.#events.size > 0) this.#wakeable.wake();
      return true;
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'events did not arrive');
      if (isUnknownWorker(error)) this.#unknown = true;
      // Events that are refused would be refused again; the next heartbeat says the same.
      if (isRefusal(error)) this.#events.sent(batch);
      // The retry comes by itself: what is queued keeps the loop from resting.
      this.#wakeable.wake();
      return false;
    }
  }

  /** Logs the loss of the control plane once, not at every attempt. */
  #missed(error: unknown, message: string): void {
    if (!this.#lost) this.#options.logger.warn({ err: error }, message);
    this.#lost = true;
  }

  #found(message: string): void {
    if (this.#lost) this.#options.logger.info(message);
    this.#lost = false;
  }
}

function isUnknownWorker(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === 'worker_not_registered';
}

function isRefusal(error: unknown): boolean {
  return error instanceof ControlPlaneError && [400, 413, 415].includes(error.status);
}
