import type { AgentBuild, WorkerSandbox } from '@svc/contract';
import {
  type CertificatePair,
  createHopTokenVerifier,
  createHttpServer,
  createLogger,
  createSelfSigned,
  createTokenVerifier,
  type HttpServer,
  type Secret,
  type TokenVerifier,
} from '@svc/service-kit';
import { ComponentDouble, controlPlaneKeys } from './component-double.ts';
import { isPortUpgrade, PortSockets } from './port-sockets.ts';
import { SandboxRecords } from './sandbox-records.ts';
import { addSandboxRoutes } from './sandbox-routes.ts';
import { SessionSockets } from './session-sockets.ts';

/** A worker on an HTTPS port of its own. It authenticates its callers as a real worker does. */
export class WorkerDouble extends SandboxRecords implements AsyncDisposable {
  readonly id: string;
  /** The WebSockets of sessions. */
  readonly sockets: SessionSockets;
  /** The connections to ports of sandboxes. */
  readonly ports: PortSockets;
  /** Nominal memory that it reports. */
  memoryMib = 8192;
  /** Templates that it reports as ready. */
  templates = ['standard'];
  /** Builds of agents that the images of its templates carry. */
  agents: AgentBuild[] = [
    { kind: 'deictic', version: '1.1.1' },
    { kind: 'claude-code', version: '2.2.2' },
    { kind: 'codex', version: '3.3.3' },
  ];
  /** Base URL; empty until the double is started. */
  url = '';
  #app: HttpServer | undefined;
  readonly #component: ComponentDouble;
  readonly #verify: TokenVerifier;
  readonly #tls: CertificatePair | undefined;
  #certificate = '';

  /** `tls` defaults to a new certificate at each start. */
  constructor(id: string, secret: Secret, tls?: CertificatePair) {
    super();
    this.id = id;
    const keys = controlPlaneKeys(secret);
    this.#verify = createTokenVerifier(keys, id);
    this.sockets = new SessionSockets(createHopTokenVerifier(keys, id));
    this.ports = new PortSockets(this, this.#verify);
    this.#component = new ComponentDouble('worker', id, secret);
    this.#tls = tls;
  }

  async start(): Promise<void> {
    const { id } = this;
    const tls = this.#tls ?? (await createSelfSigned({ commonName: id, names: [id], days: 1 }));
    const app = createHttpServer({ logger: createLogger({ level: 'silent' }), tls });
    app.addHook('onRequest', async (request) => {
      await this.#verify(request.headers.authorization);
    });
    addSandboxRoutes(app, this);
    this.sockets.listen(app.server);
    app.server.on('upgrade', (request, socket) => {
      if (isPortUpgrade(request)) this.ports.accept(request, socket);
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const address = app.server.address();
    if (typeof address !== 'object' || address === null) throw new Error('not listening');
    this.url = `https://127.0.0.1:${address.port}`;
    this.#certificate = tls.cert;
    this.#app = app;
  }

  async stop(): Promise<void> {
    this.sockets.close();
    this.#app?.server.closeAllConnections();
    await this.#app?.close();
    this.#app = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** Registers with a control plane; `changes` replace fields of the request. */
  async register(controlPlane: string, changes: object = {}): Promise<Response> {
    return this.#post(controlPlane, '/workers/register', {
      worker_id: this.id,
      url: this.url,
      certificate: this.#certificate,
      version: '0',
      capacity: this.#capacity(),
      templates: this.#templates(),
      sandboxes: [...this.sandboxes.values()],
      ...changes,
    });
  }

  /** Sends a heartbeat in the name of the worker `id`; `changes` replace fields of the request. */
  async heartbeat(controlPlane: string, id = this.id, changes: object = {}): Promise<Response> {
    return this.#post(controlPlane, `/workers/${id}/heartbeat`, {
      capacity: this.#capacity(),
      free: { memory_mib: this.memoryMib, disk_mib: 100_000 },
      templates: this.#templates(),
      sandboxes: [...this.sandboxes.values()],
      ...changes,
    });
  }

  /** Sends a short report that names nothing; `changes` replace fields of the request. */
  async renewLease(controlPlane: string, id = this.id, changes: object = {}): Promise<Response> {
    return this.#post(controlPlane, `/workers/${id}/lease`, {
      free: { memory_mib: this.memoryMib, disk_mib: 100_000 },
      sandboxes: [],
      ...changes,
    });
  }

  /** Reports these records as events. */
  async event(controlPlane: string, ...events: WorkerSandbox[]): Promise<Response> {
    return this.#post(controlPlane, `/workers/${this.id}/events`, { events });
  }

  /** Sends a request to a control plane with this worker's credential. */
  async ask(
    controlPlane: string,
    method: string,
    path: string,
    request: Pick<RequestInit, 'body' | 'headers' | 'signal'> = {},
  ): Promise<Response> {
    return this.#component.ask(controlPlane, method, path, request);
  }

  #post(controlPlane: string, path: string, body: unknown): Promise<Response> {
    return this.ask(controlPlane, 'POST', path, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  #capacity() {
    return { vcpu: 4, memory_mib: this.memoryMib, disk_mib: 100_000 };
  }

  #templates() {
    return this.templates.map((template) => ({
      template,
      image: `${template}-1`,
      ready: true,
      vcpu: 1,
      memory_mib: 512,
      disk_mib: 2048,
      agents: this.agents,
    }));
  }
}
