import {
  type HeartbeatRequest,
  HeartbeatResponse,
  type RegisterWorkerRequest,
  RegisterWorkerResponse,
  type RenewLeaseRequest,
  RenewLeaseResponse,
  ReportUsageResponse,
  type UsageSample,
  type WorkerSandbox,
} from '@svc/contract';
import {
  answerOf,
  ControlPlaneError,
  type ControlPlaneTransport,
} from './control-plane-transport.ts';

const DEADLINE_MS = 10_000;

const registered = answerOf<RegisterWorkerResponse>(RegisterWorkerResponse);
const usageAnswer = answerOf<ReportUsageResponse>(ReportUsageResponse);
const heartbeatAnswer = answerOf<HeartbeatResponse>(HeartbeatResponse);
const leaseAnswer = answerOf<RenewLeaseResponse>(RenewLeaseResponse);

/** The calls by which a worker registers and reports its sandboxes. They are not retried here. */
export class ControlPlaneClient {
  readonly #transport: ControlPlaneTransport;
  readonly #path: string;

  constructor(transport: ControlPlaneTransport, workerId: string) {
    this.#transport = transport;
    this.#path = `/workers/${encodeURIComponent(workerId)}`;
  }

  register(body: RegisterWorkerRequest, signal: AbortSignal): Promise<RegisterWorkerResponse> {
    return this.#transport.json(post('/workers/register', body, signal), registered);
  }

  /** Fails with an error that {@link isNotRegistered} when this worker has to register again. */
  heartbeat(body: HeartbeatRequest, signal: AbortSignal): Promise<HeartbeatResponse> {
    return this.#transport.json(post(`${this.#path}/heartbeat`, body, signal), heartbeatAnswer);
  }

  /** Fails like {@link heartbeat}, and with one that {@link isUnknownRoute} at a control plane of an earlier version. */
  renewLease(body: RenewLeaseRequest, signal: AbortSignal): Promise<RenewLeaseResponse> {
    return this.#transport.json(post(`${this.#path}/lease`, body, signal), leaseAnswer);
  }

  /** Sends at most 1000 events. */
  sendEvents(events: readonly WorkerSandbox[], signal: AbortSignal): Promise<void> {
    return this.#transport.done(post(`${this.#path}/events`, { events }, signal));
  }

  /** Reports at most `LIMITS.usageBatch` samples, all of which the answer settles. */
  reportUsage(samples: readonly UsageSample[], signal: AbortSignal): Promise<ReportUsageResponse> {
    return this.#transport.json(post('/usage', { samples }, signal), usageAnswer);
  }
}

/** Whether a call failed because the control plane does not know this worker. */
export function isNotRegistered(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === 'worker_not_registered';
}

/** Whether a call failed because the control plane is of a version that does not have it. */
export function isUnknownRoute(error: unknown): boolean {
  return error instanceof ControlPlaneError && error.code === 'route_not_found';
}

function post(path: string, json: unknown, signal: AbortSignal) {
  return { method: 'POST', path, isReport: true, json, signal, deadlineMs: DEADLINE_MS } as const;
}
