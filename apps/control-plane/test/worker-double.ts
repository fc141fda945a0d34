import { once } from 'node:events';
import {
  CONTROL_PLANE_NAME,
  type ErrorCode,
  type ExecRequest,
  INTERNAL_PREFIX,
  OCTET_STREAM_MEDIA_TYPE,
  type PlaceSandboxRequest,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import {
  acceptStreamOnly,
  clientGoneSignal,
  createHttpServer,
  createLogger,
  createSelfSigned,
  createTokenMinter,
  createTokenVerifier,
  formatEvent,
  type HttpServer,
  type Secret,
} from '@svc/service-kit';

/** A worker for the tests of the control plane: the internal API over HTTPS, with sandboxes that are only records. */
export class WorkerDouble implements AsyncDisposable {
  readonly id: string;
  readonly sandboxes = new Map<string, WorkerSandbox>();
  readonly files = new Map<string, Buffer>();
  readonly placed: PlaceSandboxRequest[] = [];
  /** The operation of this name fails with this code. */
  readonly failures = new Map<string, ErrorCode>();
  /** Runs before a creation is answered. */
  beforeCreated: (request: PlaceSandboxRequest, gone: AbortSignal) => Promise<void> = async () =>
    undefined;
  /** Runs before a destruction is answered. */
  beforeDestroyed: (vmId: string) => Promise<void> = async () => undefined;
  /** Keys of each update of secrets, by sandbox. */
  readonly configUpdates: { readonly vmId: string; readonly keys: readonly string[] }[] = [];
  /** Logs that outlast their sandbox. */
  readonly keptLogs = new Map<string, string>();
  /** Commands that hang. */
  busy = 0;
  readonly aborted: string[] = [];
  memoryMib = 8192;
  templates = ['standard'];
  #app: HttpServer | undefined;
  #secret: Secret;
  #url = '';
  #certificate = '';
  #revision = 0;

  constructor(id: string, secret: Secret) {
    this.id = id;
    this.#secret = secret;
  }

  async start(): Promise<void> {
    const { cert, key } = await createSelfSigned({
      commonName: this.id,
      names: [this.id],
      days: 1,
    });
    const app = createHttpServer({ logger: createLogger({ level: 'silent' }), tls: { cert, key } });
    this.#routes(app);
    await app.listen({ host: '127.0.0.1', port: 0 });
    const address = app.server.address();
    if (typeof address !== 'object' || address === null) throw new Error('not listening');
    this.#url = `https://127.0.0.1:${address.port}`;
    this.#certificate = cert;
    this.#app = app;
  }

  async stop(): Promise<void> {
    this.#app?.server.closeAllConnections();
    await this.#app?.close();
    this.#app = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async register(controlPlane: string, changes: object = {}): Promise<Response> {
    return this.#post(controlPlane, '/workers/register', {
      worker_id: this.id,
      url: this.#url,
      certificate: this.#certificate,
      version: '0',
      capacity: this.#capacity(),
      templates: this.#templates(),
      sandboxes: [...this.sandboxes.values()],
      ...changes,
    });
  }

  async heartbeat(controlPlane: string, id = this.id): Promise<Response> {
    return this.#post(controlPlane, `/workers/${id}/heartbeat`, {
      capacity: this.#capacity(),
      free: { memory_mib: this.memoryMib, disk_mib: 100_000 },
      templates: this.#templates(),
      sandboxes: [...this.sandboxes.values()],
    });
  }

  async event(controlPlane: string, ...events: WorkerSandbox[]): Promise<Response> {
    return this.#post(controlPlane, `/workers/${this.id}/events`, { events });
  }

  /** Changes a record as a worker does: with a new revision. */
  change(vmId: string, changes: Partial<WorkerSandbox>): WorkerSandbox {
    const current = this.sandboxes.get(vmId);
    if (current === undefined) throw new ServiceError('sandbox_not_found');
    this.#revision += 1;
    const next = { ...current, ...changes, revision: this.#revision };
    this.sandboxes.set(vmId, next);
    return next;
  }

  end(vmId: string, reason: WorkerSandbox['end_reason'] = 'deleted'): WorkerSandbox {
    const ended_at = new Date().toISOString();
    return this.change(vmId, {
      state: 'destroyed',
      ended_at,
      ...(reason === undefined ? {} : { end_reason: reason }),
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
    }));
  }

  /** Calls the control plane as this worker does. */
  async ask(
    controlPlane: string,
    method: string,
    path: string,
    request: Pick<RequestInit, 'body' | 'headers' | 'signal'> = {},
  ): Promise<Response> {
    const token = await createTokenMinter(this.#secret, this.id)(CONTROL_PLANE_NAME);
    return fetch(`${controlPlane}${INTERNAL_PREFIX}${path}`, {
      method,
      ...request,
      headers: { authorization: `Bearer ${token}`, ...request.headers },
      ...(request.body instanceof ReadableStream ? { duplex: 'half' } : {}),
    });
  }

  #post(controlPlane: string, path: string, body: unknown): Promise<Response> {
    return this.ask(controlPlane, 'POST', path, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  #fail(operation: string): void {
    const code = this.failures.get(operation);
    if (code !== undefined) throw new ServiceError(code);
  }

  #running(vmId: string): WorkerSandbox {
    const sandbox = this.sandboxes.get(vmId);
    if (sandbox === undefined) throw new ServiceError('sandbox_not_found');
    if (sandbox.state === 'paused') return this.change(vmId, { state: 'running' });
    if (sandbox.state !== 'running') throw new ServiceError('sandbox_not_running');
    return sandbox;
  }

  #routes(app: HttpServer): void {
    const verify = createTokenVerifier(this.#secret, this.id);
    app.addHook('onRequest', async (request) => {
      await verify(request.headers.authorization);
    });
    const base = `${INTERNAL_PREFIX}/sandboxes`;
    app.post<{ Body: PlaceSandboxRequest }>(base, async ({ body }, reply) => {
      this.placed.push(body);
      this.#fail('create');
      await this.beforeCreated(body, clientGoneSignal(reply));
      this.sandboxes.set(body.vm_id, recordOf(body));
      return reply
        .code(201)
        .send(this.change(body.vm_id, { running_at: new Date().toISOString() }));
    });
    app.get<{ Querystring: { tenant_id?: string } }>(base, async ({ query }) => {
      this.#fail('list');
      const all = [...this.sandboxes.values()];
      return { sandboxes: all.filter((sandbox) => sandbox.tenant_id === query.tenant_id) };
    });
    app.delete<{ Params: Id }>(`${base}/:id`, async ({ params }) => {
      this.#fail('destroy');
      await this.beforeDestroyed(params.id);
      return this.end(params.id);
    });
    app.post<{ Params: Id; Body: ExecRequest }>(`${base}/:id/exec`, async (request, reply) => {
      this.#fail('exec');
      this.#running(request.params.id);
      const { command } = request.body;
      if (command === 'hang') return this.#hang(request.params.id, clientGoneSignal(reply));
      if (request.headers.accept !== 'text/event-stream') {
        return { output: command, exit_code: 0, duration_ms: 1, truncated: false };
      }
      const events = [
        formatEvent('stdout', { data: command }),
        formatEvent('exit', { exit_code: 0, duration_ms: 1, truncated: false }),
      ];
      return reply.type('text/event-stream').send(events.join(''));
    });
    app.get<{ Params: Id; Querystring: { path: string } }>(
      `${base}/:id/files`,
      async ({ params, query }, reply) => {
        this.#fail('download');
        this.#running(params.id);
        const bytes = this.files.get(query.path);
        if (bytes === undefined) throw new ServiceError('file_not_found');
        return reply.type(OCTET_STREAM_MEDIA_TYPE).send(bytes);
      },
    );
    app.register(async (scope) => {
      acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
      scope.post<{ Params: Id; Querystring: { path: string } }>(
        `${base}/:id/files`,
        async ({ params, query, raw }) => {
          this.#fail('upload');
          this.#running(params.id);
          const chunks: Buffer[] = [];
          for await (const chunk of raw) chunks.push(chunk);
          this.files.set(query.path, Buffer.concat(chunks));
          return { status: 'uploaded' };
        },
      );
    });
    app.post<{ Params: Id }>(`${base}/:id/pause`, async ({ params }) => {
      this.#fail('pause');
      this.#running(params.id);
      return this.change(params.id, { state: 'paused' });
    });
    app.post<{ Params: Id }>(`${base}/:id/resume`, async ({ params }) => this.#running(params.id));
    app.post<{ Params: Id; Body: { reason: string } }>(
      `${base}/:id/cancel`,
      async ({ params, body }) => ({ vm_id: params.id, cancelled: false, reason: body.reason }),
    );
    app.post<{ Params: Id; Body: { keys: string[] } }>(
      `${base}/:id/config-update`,
      async ({ params, body }, reply) => {
        this.#fail('config-update');
        this.#running(params.id);
        this.configUpdates.push({ vmId: params.id, keys: body.keys });
        return reply.code(204).send();
      },
    );
    app.get<{ Params: Id }>(`${base}/:id/logs`, async ({ params }) => {
      const kept = this.keptLogs.get(params.id);
      if (kept !== undefined) return { content: kept, truncated: false, total_bytes: kept.length };
      this.#running(params.id);
      return { content: '', truncated: false, total_bytes: 0 };
    });
  }

  async #hang(vmId: string, gone: AbortSignal): Promise<never> {
    this.busy += 1;
    if (!gone.aborted) await once(gone, 'abort');
    this.aborted.push(vmId);
    throw gone.reason;
  }
}

interface Id {
  id: string;
}

function recordOf(request: PlaceSandboxRequest): WorkerSandbox {
  return {
    vm_id: request.vm_id,
    generation: request.generation,
    tenant_id: request.tenant_id,
    template: request.template,
    state: 'running',
    vcpu: request.vcpu ?? 1,
    cpu_fraction: 1,
    memory_mib: request.memory_mib ?? 512,
    disk_mib: request.disk_mib ?? 2048,
    rootfs: 'standard-1.qcow2',
    host_port: 22_001,
    endpoint: '127.0.0.1',
    created_at: request.created_at,
    active_connections: 0,
    cpu_seconds: 0,
  };
}
