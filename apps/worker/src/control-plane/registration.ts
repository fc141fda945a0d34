import {
  type DestroyOrder,
  type HeartbeatRequest,
  type QuarantineOrder,
  WORKER_TIMES,
  type WorkerSandbox,
} from '@svc/contract';
import { backoffMs, settledWithin, sleep, Wakeable } from '@svc/service-kit/concurrency';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import {
  type ControlPlaneClient,
  isNotRegistered,
  isUnknownRoute,
} from './control-plane-client.ts';
import { EventSender } from './event-sender.ts';
import type { Report, WorkerReporter } from './worker-report.ts';

/** The worker's properties that are fixed for its lifetime. */
export interface WorkerIdentity {
  readonly worker_id: string;
  readonly url: string;
  readonly certificate: string;
  readonly version: string;
  readonly instance_id: string;
}

/** What a control plane orders in its answer to a report. */
interface Orders {
  readonly destroy: readonly DestroyOrder[];
  /** All sandboxes that are in quarantine; undefined in the answer to a short report. */
  readonly quarantine?: readonly QuarantineOrder[];
}

/** What every report says about the worker itself. */
type Standing = Pick<HeartbeatRequest, 'draining' | 'instance_id'>;

export interface RegistrationOptions {
  readonly client: ControlPlaneClient;
  readonly reporter: WorkerReporter;
  /** Called for each registration, since the URL is known only once the server listens. */
  readonly identity: () => WorkerIdentity;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  /**
   * Called when a control plane has accepted a report, with its orders and the monotonic time at which the report was sent.
   * Must neither throw nor block.
   */
  readonly onAccepted: (orders: Orders, sentAtMs: number) => void;
  /** Called when an operator wants this worker to end, with every heartbeat until it does. Must neither throw nor block. */
  readonly onDrainOrder: () => void;
  /** Longest pause between attempts to register, in ms. */
  readonly maxBackoffMs?: number;
}

const EVENT_RETRY_MS = 1_000;
const MAX_BACKOFF_MS = 10_000;

/**
 * Keeps this worker registered with the control plane: registers, sends heartbeats, and reports changes immediately.
 * Makes one call at a time, so that reports arrive in the order in which they were made. While the control plane is away it
 * retries forever, and the VMs keep running.
 */
export class WorkerRegistration {
  readonly #options: RegistrationOptions;
  readonly #events: EventSender;
  readonly #wakeable = new Wakeable();
  readonly #registered = Promise.withResolvers<void>();
  #heartbeatMs: number = WORKER_TIMES.heartbeatIntervalMs;
  /** From this monotonic time on, the next report is complete. */
  #completeAt = 0;
  #isUnreachable = false;
  /** Set when the control plane has forgotten this worker. */
  #mustRegister = false;
  /** Set when the worker is going away; resolves once a control plane has been told. */
  #drain: PromiseWithResolvers<void> | undefined;
  #isRegistered = false;

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#events = new EventSender(options);
    this.#registered.promise.catch(() => undefined);
  }

  /** Settles with the first registration; rejects if the worker ends before it. */
  get registered(): Promise<void> {
    return this.#registered.promise;
  }

  /** Queues the record of a changed sandbox. */
  push(record: WorkerSandbox): void {
    this.#events.push(record);
    this.#wakeable.wake();
  }

  /**
   * Tells the control plane from now on that this worker is going away, so that it gets no new sandboxes. Settles once
   * the control plane knows, or after `ms` milliseconds; at once if it has never registered. Never rejects.
   */
  async drain(ms: number): Promise<void> {
    this.#drain ??= Promise.withResolvers();
    this.#wakeable.wake();
    if (this.#isRegistered) await settledWithin(this.#drain.promise, ms);
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#register(signal);
      await this.#sendReports(signal);
    }
    this.#registered.reject(new Error('the worker ended before it was registered'));
  }

  /** Sends the queued events without retries, within `ms` milliseconds; for the end of the worker. */
  async flush(ms: number): Promise<void> {
    const deadline = AbortSignal.timeout(ms);
    while (this.#events.isPending && !deadline.aborted && !this.#mustRegister) {
      if (!(await this.#sendEvents(deadline))) return;
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { client, reporter, identity, logger, maxBackoffMs } = this.#options;
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        const report = await reporter.complete(true);
        const register = async ({ free: _free, ...body }: typeof report.body) =>
          withQuarantine(await client.register({ ...identity(), ...body }, signal));
        const answer = await this.#send(report, register, 'registered with the control plane');
        this.#heartbeatMs = answer.heartbeat_interval_ms;
        this.#mustRegister = false;
        this.#isRegistered = true;
        this.#registered.resolve();
        this.#completed();
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#unreachable(error, 'cannot register with the control plane; retrying');
        logger.debug({ err: error, attempt }, 'registration failed');
        await sleep(
          backoffMs(attempt, { baseMs: 250, maxMs: maxBackoffMs ?? MAX_BACKOFF_MS }),
          signal,
        );
      }
    }
  }

  /** Sends heartbeats and events until the worker has to register again. */
  async #sendReports(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let next = clock.monotonic() + this.#heartbeatMs;
    let announced = this.#drain;
    while (!signal.aborted) {
      await this.#wakeable.wait(Math.max(0, next - clock.monotonic()), signal);
      if (signal.aborted) return;
      if (announced !== this.#drain) {
        announced = this.#drain;
        next = clock.monotonic();
      }
      if (this.#events.isPending && !(await this.#sendEvents(signal))) {
        await sleep(EVENT_RETRY_MS, signal);
      }
      if (clock.monotonic() >= next) {
        await this.#report(signal);
        next = clock.monotonic() + this.#heartbeatMs;
      }
      if (this.#mustRegister) return;
    }
  }

  /** Sends what has changed, or everything when that is due or wanted. */
  async #report(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      const isSettled = clock.monotonic() < this.#completeAt && (await this.#renewLease(signal));
      if (!isSettled) await this.#heartbeat(signal);
    } catch (error) {
      if (signal.aborted) return;
      // While no report is accepted, the ledger may change without this worker.
      this.#completeAt = 0;
      if (isNotRegistered(error)) this.#mustRegister = true;
      else this.#unreachable(error, 'the control plane does not answer; sandboxes keep running');
    }
  }

  /** False when a complete report is wanted. */
  async #renewLease(signal: AbortSignal): Promise<boolean> {
    const { client, reporter } = this.#options;
    const report = await reporter.changes();
    try {
      const answer = await this.#send(report, (body) => client.renewLease(body, signal));
      return answer.report_all !== true;
    } catch (error) {
      if (isUnknownRoute(error)) return false;
      throw error;
    }
  }

  async #heartbeat(signal: AbortSignal): Promise<void> {
    const { client, reporter } = this.#options;
    const report = await reporter.complete(false);
    await this.#send(report, async (body) => withQuarantine(await client.heartbeat(body, signal)));
    this.#completed();
  }

  /** Sends a report about this worker with `call`, and does what is to be done once it has been accepted. */
  async #send<Body, Answer extends Orders & { readonly drain?: boolean }>(
    report: Report<Body>,
    call: (body: Body & Standing) => Promise<Answer>,
    reached = 'the control plane answers again',
  ): Promise<Answer> {
    const { identity, clock, onAccepted, onDrainOrder } = this.#options;
    const drain = this.#drain;
    const { instance_id } = identity();
    const sentAt = clock.monotonic();
    const answer = await call({ ...report.body, ...drainingIf(drain), instance_id });
    drain?.resolve();
    report.acknowledge();
    this.#reached(reached);
    onAccepted(answer, sentAt);
    if (answer.drain && drain === undefined) onDrainOrder();
    return answer;
  }

  #completed(): void {
    this.#completeAt = this.#options.clock.monotonic() + WORKER_TIMES.completeReportMs;
  }

  /** Sends one batch; false when that failed. Wakes the loop for the events that are still queued. */
  async #sendEvents(signal: AbortSignal): Promise<boolean> {
    const result = await this.#events.send(signal);
    if (result === 'not_registered') this.#mustRegister = true;
    if (this.#events.isPending) this.#wakeable.wake();
    return result === 'sent';
  }

  /** Logs the loss of the control plane once, not for every attempt. */
  #unreachable(error: unknown, message: string): void {
    if (!this.#isUnreachable) this.#options.logger.warn({ err: error }, message);
    this.#isUnreachable = true;
  }

  #reached(message: string): void {
    if (this.#isUnreachable) this.#options.logger.info(message);
    this.#isUnreachable = false;
  }
}

/** The answer to a complete report names all sandboxes that are in quarantine, and leaves the field out if there are none. */
function withQuarantine<Answer extends Orders>(answer: Answer) {
  return { ...answer, quarantine: answer.quarantine ?? [] };
}

function drainingIf(drain: unknown): { readonly draining?: true } {
  return drain === undefined ? {} : { draining: true };
}
