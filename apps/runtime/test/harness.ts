import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { loadConfig } from '@svc/config';
import type { SessionRoute } from '@svc/contract';
import {
  type ComponentIdentity,
  createLogger,
  createSelfSigned,
  generateKeyPair,
  Secret,
  type SessionIdentity,
  SessionTokens,
  sessionTokenKey,
} from '@svc/service-kit';
import { WorkerDouble } from '@svc/worker-double';
import { type ClientOptions, WebSocket } from 'ws';
import { type RuntimeHost, startRuntimeHost } from '../src/index.ts';
import type { RuntimeBounds } from '../src/options.ts';
import { ControlPlaneDouble } from './control-plane-double.ts';

export const CLUSTER_SECRET = new Secret('a-secret-of-at-least-32-characters-for-tests');
const TENANT = 'usr_owner';

/** A refused upgrade. */
export interface Refusal {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: Record<string, unknown>;
}

/** How a connection ended. */
export interface End {
  readonly code: number;
  readonly reason: string;
}

/** A connected client that records its frames. */
export interface Client {
  readonly socket: WebSocket;
  readonly frames: string[];
  readonly ended: Promise<End>;
}

/** A runtime host between test doubles of a control plane and a worker, all with TLS. */
export class Harness implements AsyncDisposable {
  readonly tokens = new SessionTokens([sessionTokenKey(CLUSTER_SECRET)]);
  readonly logLines: string[] = [];
  readonly controlPlane: ControlPlaneDouble;
  readonly #worker: WorkerDouble;
  readonly #tls: { cert: string; key: string };
  readonly #clients: WebSocket[] = [];
  #host: RuntimeHost | undefined;

  private constructor(identity: ComponentIdentity, tls: { cert: string; key: string }) {
    this.#tls = tls;
    this.controlPlane = new ControlPlaneDouble({ secret: CLUSTER_SECRET, identity, tls });
    this.#worker = new WorkerDouble('wrk_1', CLUSTER_SECRET, tls);
  }

  static async start(
    bounds: Partial<RuntimeBounds> = {},
    environment: Readonly<Record<string, string>> = {},
  ): Promise<Harness> {
    const names = ['localhost', '127.0.0.1'];
    const tls = await createSelfSigned({ commonName: 'test', names, days: 1 });
    const identity = { id: 'rth_1', key: await generateKeyPair() };
    const harness = new Harness(identity, tls);
    await harness.#worker.start();
    const url = await harness.controlPlane.start();
    harness.#host = await startRuntimeHost({
      config: loadConfig({ SVC_RUNTIME_LISTEN: '127.0.0.1:0', ...environment }),
      logger: createLogger({
        level: 'debug',
        pretty: false,
        destination: { write: (line) => void harness.logLines.push(line) },
      }),
      identity,
      tls,
      controlPlane: { url, ca: tls.cert },
      bounds,
    });
    return harness;
  }

  /** The worker's side of the sessions' WebSockets. */
  get worker(): WorkerDouble['sockets'] {
    return this.#worker.sockets;
  }

  get host(): RuntimeHost {
    if (this.#host === undefined) throw new Error('not started');
    return this.#host;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.terminate();
    await this.#host?.close();
    await this.#worker.stop();
    await this.controlPlane.stop();
  }

  /** Adds a session to the control plane. One that is over has no worker. */
  addSession({ isOver = false, ...change }: Partial<SessionRoute> & { isOver?: boolean } = {}) {
    const { worker, ...route }: SessionRoute = {
      chat_session_id: randomUUID(),
      tenant_id: TENANT,
      user_id: 'somebody',
      app_id: 'svc-sandbox',
      set_id: 'default',
      cua_enabled: false,
      status: 'active',
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      worker: {
        worker_id: this.#worker.id,
        url: this.#worker.url,
        certificate: this.#tls.cert,
        vm_id: 'vm_1',
      },
      ...change,
    };
    const session = isOver || worker === undefined ? route : { ...route, worker };
    this.controlPlane.sessions.set(route.chat_session_id, session);
    return session;
  }

  /** The token of the session's owner. */
  token(id: string, change: Partial<SessionIdentity> = {}, expiresAt?: Date): Promise<string> {
    const identity = {
      user_id: TENANT,
      app_id: 'svc-sandbox',
      set_id: 'default',
      chat_session_id: id,
      cua_enabled: false,
      ...change,
    };
    return this.tokens.mint(identity, expiresAt ?? new Date(Date.now() + 60_000));
  }

  /** Opens a WebSocket at `path`. Rejects with a {@link Refusal} if it is refused. */
  async open(path: string, options: ClientOptions = {}, protocols: string[] = []): Promise<Client> {
    const url = `${this.host.url.replace('localhost', '127.0.0.1')}${path}`;
    const socket = new WebSocket(url, protocols, { ca: this.#tls.cert, ...options });
    this.#clients.push(socket);
    const frames: string[] = [];
    socket.on('message', (data) => frames.push(data.toString()));
    const ended = new Promise<End>((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    const opened = Promise.withResolvers<void>();
    socket.once('open', () => opened.resolve());
    socket.on('error', opened.reject);
    socket.once('unexpected-response', (_request, response) => {
      const { statusCode: status = 0, headers } = response;
      response.toArray().then((chunks) => {
        const body = JSON.parse(Buffer.concat(chunks).toString());
        opened.reject({ status, headers, body } satisfies Refusal);
      }, opened.reject);
    });
    await opened.promise;
    return { socket, frames, ended };
  }

  /** Opens a session's WebSocket as its owner. */
  async attach(session: SessionRoute = this.addSession(), query = ''): Promise<Client> {
    const id = session.chat_session_id;
    const headers = { authorization: `Bearer ${await this.token(id)}` };
    return this.open(`/v1/sessions/${id}/ws${query}`, { headers });
  }

  /** The refusal of an upgrade. */
  async refused(path: string, options: ClientOptions = {}): Promise<Refusal> {
    return this.open(path, options).then(
      () => Promise.reject(new Error('it was accepted')),
      (refusal: Refusal) => refusal,
    );
  }

  get #origin(): string {
    return this.host.url.replace('wss:', 'https:').replace('localhost', '127.0.0.1');
  }

  /** A plain request. */
  async get(
    path: string,
    { method = 'GET', origin = this.#origin } = {},
  ): Promise<Refusal & { text: string }> {
    const sent = httpsRequest(origin + path, { method, ca: this.#tls.cert, agent: false });
    sent.end();
    const [response] = await once(sent, 'response');
    const text = Buffer.concat(await response.toArray()).toString();
    const body = text.startsWith('{') ? JSON.parse(text) : {};
    return { status: response.statusCode, headers: response.headers, text, body };
  }
}
