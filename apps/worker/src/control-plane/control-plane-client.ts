import {
  type HeartbeatRequest,
  HeartbeatResponse,
  type RegisterWorkerRequest,
  RegisterWorkerResponse,
  type WorkerSandbox,
} from '@svc/contract';
import { answerOf, type ControlPlaneTransport } from './control-plane-transport.ts';

const DEADLINE_MS = 10_000;

const registered = answerOf<RegisterWorkerResponse>(RegisterWorkerResponse);
const beaten = answerOf<HeartbeatResponse>(HeartbeatResponse);

/** The calls by which a worker says what it is and what lives on it. None is retried here. */
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

  /** Fails with a `ControlPlaneError` 404 when this worker has to register again. */
  heartbeat(body: HeartbeatRequest, signal: AbortSignal): Promise<HeartbeatResponse> {
    return this.#transport.json(post(`${this.#path}/heartbeat`, body, signal), beaten);
  }

  /** At most 1000 events at once. */
  sendEvents(events: readonly WorkerSandbox[], signal: AbortSignal): Promise<void> {
    return this.#transport.done(post(`${this.#path}/events`, { events }, signal));
  }
}

function post(path: string, json: unknown, signal: AbortSignal) {
  return { method: 'POST', path, json, signal, deadlineMs: DEADLINE_MS } as const;
}
