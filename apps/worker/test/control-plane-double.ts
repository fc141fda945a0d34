import {
  CONTROL_PLANE_NAME,
  type DestroyOrder,
  HeartbeatRequest,
  type HeartbeatResponse,
  type QuarantineOrder,
  RegisterWorkerRequest,
  RenewLeaseRequest,
  type ReportedSandbox,
  ReportUsageRequest,
  ServiceError,
  type UsageSample,
  WorkerEventsRequest,
} from '@svc/contract';
import {
  type ComponentIdentity,
  createHttpServer,
  createSelfSigned,
  createTokenVerifier,
  findAmong,
  type HttpServer,
  type KeyPair,
  type TokenVerifier,
} from '@svc/service-kit';
import { freePort } from '@svc/service-kit/testing';
import { pino } from 'pino';
import { OBJECTS_PATH } from './chunks-double.ts';
import { SessionStoreDouble } from './session-store-double.ts';

/** A control plane for tests: an HTTPS server that checks tokens and records all calls. */
export class ControlPlaneDouble {
  readonly registrations: RegisterWorkerRequest[] = [];
  readonly heartbeats: HeartbeatRequest[] = [];
  /** Short reports; undefined for a control plane of a version without them. */
  leases: RenewLeaseRequest[] | undefined;
  /** Asks in the answer to the next short report for a complete one, once. */
  wantsAll = false;
  readonly events: ReportedSandbox[] = [];
  readonly usage: UsageSample[] = [];
  /** Sent with the next answer, once. */
  orders: DestroyOrder[] = [];
  /** Sent with every answer. */
  quarantine: QuarantineOrder[] = [];
  /** While false, heartbeats and events are answered with 404. */
  knows = true;
  /** While true, every call fails with 500. */
  broken = false;
  /** How many calls failed because of {@link broken}. */
  failed = 0;
  heartbeatMs = 50;
  readonly sessions = new SessionStoreDouble();
  readonly port: number;
  readonly ca: string;
  readonly #tls: { cert: string; key: string };
  readonly #verify: TokenVerifier;
  readonly #key: KeyPair;
  #app: HttpServer | undefined;

  private constructor(
    port: number,
    tls: { cert: string; key: string },
    key: KeyPair,
    worker: ComponentIdentity,
  ) {
    this.port = port;
    this.#tls = tls;
    this.ca = tls.cert;
    this.#key = key;
    this.#verify = createTokenVerifier(findAmong(worker.key), CONTROL_PLANE_NAME);
  }

  /** Reserves an address, of a control plane with this key that knows this worker; call {@link start} to serve on it. */
  static async create(key: KeyPair, worker: ComponentIdentity): Promise<ControlPlaneDouble> {
    const tls = await createSelfSigned({
      commonName: 'control plane',
      names: ['127.0.0.1'],
      days: 1,
    });
    return new ControlPlaneDouble(await freePort('127.0.0.1'), tls, key, worker);
  }

  get url(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const app = createHttpServer({ logger: pino({ level: 'silent' }), tls: this.#tls });
    app.addHook('onRequest', async (request) => {
      const { authorization } = request.headers;
      const isObject = request.url.startsWith(OBJECTS_PATH);
      // A URL is all the authority that it needs; a token must not reach the object store.
      if (!isObject) await this.#verify(authorization);
      else if (authorization !== undefined) throw new ServiceError('bad_request');
      if (!this.broken) return;
      this.failed += 1;
      throw new ServiceError('internal_error');
    });
    this.#routes(app);
    this.sessions.serve(app);
    this.#app = app;
    await app.listen({ host: '127.0.0.1', port: this.port });
  }

  async stop(): Promise<void> {
    const app = this.#app;
    this.#app = undefined;
    if (app === undefined) return;
    app.server.closeAllConnections();
    await app.close();
  }

  #routes(app: HttpServer): void {
    app.get('/internal/v1/keys', async () => ({
      keys: [{ ...this.#key.publicKey, kid: this.#key.id }],
    }));
    app.post(
      '/internal/v1/workers/register',
      { schema: { body: RegisterWorkerRequest } },
      async (request) => {
        this.registrations.push(request.body);
        this.knows = true;
        return { heartbeat_interval_ms: this.heartbeatMs, ...this.#takeOrders() };
      },
    );
    app.post(
      '/internal/v1/workers/:id/heartbeat',
      { schema: { body: HeartbeatRequest } },
      async (request) => {
        if (!this.knows) throw new ServiceError('worker_not_registered');
        this.heartbeats.push(request.body);
        return this.#takeOrders();
      },
    );
    app.post(
      '/internal/v1/workers/:id/lease',
      { schema: { body: RenewLeaseRequest } },
      async (request) => {
        if (this.leases === undefined) throw new ServiceError('route_not_found');
        if (!this.knows) throw new ServiceError('worker_not_registered');
        this.leases.push(request.body);
        const wantsAll = this.wantsAll;
        this.wantsAll = false;
        const { destroy } = this.#takeOrders();
        return { destroy, ...(wantsAll ? { report_all: true } : {}) };
      },
    );
    app.post(
      '/internal/v1/workers/:id/events',
      { schema: { body: WorkerEventsRequest } },
      async (request, reply) => {
        if (!this.knows) throw new ServiceError('worker_not_registered');
        this.events.push(...request.body.events);
        return reply.code(204).send();
      },
    );
    app.post('/internal/v1/usage', { schema: { body: ReportUsageRequest } }, async (request) => {
      const samples = request.body.samples as UsageSample[];
      this.usage.push(...samples);
      return { accepted: samples.length, known: 0, refused: [] };
    });
  }

  #takeOrders(): Pick<HeartbeatResponse, 'destroy' | 'quarantine'> {
    const destroy = this.orders;
    this.orders = [];
    return { destroy, quarantine: this.quarantine };
  }
}
