import type { AddressInfo } from 'node:net';
import {
  CONTROL_PLANE_NAME,
  INTERNAL_PREFIX,
  RUNTIME_NAME,
  ServiceError,
  type SessionRoute,
} from '@svc/contract';
import {
  type CertificatePair,
  createHttpServer,
  createTokenVerifier,
  type HttpServer,
  RequestDrain,
  type Secret,
} from '@svc/service-kit';
import { pino } from 'pino';

/** A control plane that answers lookups of the given sessions, for runtime hosts only. */
export class ControlPlaneDouble {
  readonly sessions = new Map<string, SessionRoute>();
  readonly asked: string[] = [];
  /** The routes of sessions after their recovery. */
  readonly recovered = new Map<string, SessionRoute>();
  /** The names of the runtime hosts that have reported and not left, by id. */
  readonly runtimeHosts = new Map<string, string>();
  /** Makes it unready, as the drain of a real one does. */
  readonly drain = new RequestDrain(() => false);
  /** Answers every request with 500 while set. */
  isBroken = false;
  readonly #app: HttpServer;

  constructor(secret: Secret, tls: CertificatePair) {
    this.#app = createHttpServer({ logger: pino({ level: 'silent' }), tls });
    this.drain.watch(this.#app);
    const verify = createTokenVerifier(secret, CONTROL_PLANE_NAME);
    this.#app.get('/readyz', async () => {
      if (this.isBroken) throw new ServiceError('internal_error');
      return { status: 'ready' };
    });
    this.#app.addHook('onRequest', async ({ url, headers }) => {
      if (!url.startsWith(INTERNAL_PREFIX)) return;
      const { issuer } = await verify(headers.authorization);
      if (issuer !== RUNTIME_NAME) throw new ServiceError('unauthorized');
    });
    const path = `${INTERNAL_PREFIX}/runtime-hosts/:id`;
    this.#app.put(path, async (request, reply) => {
      const { id } = request.params as { id: string };
      this.runtimeHosts.set(id, (request.body as { name: string }).name);
      return reply.code(204).send();
    });
    this.#app.delete(path, async (request, reply) => {
      this.runtimeHosts.delete((request.params as { id: string }).id);
      return reply.code(204).send();
    });
    this.#app.post(`${INTERNAL_PREFIX}/sessions/:id/recover`, async (request) => {
      const { id } = request.params as { id: string };
      const route = this.recovered.get(id) ?? this.sessions.get(id);
      if (route === undefined) throw new ServiceError('session_not_found');
      this.sessions.set(id, route);
      return route;
    });
    this.#app.get(`${INTERNAL_PREFIX}/sessions/:id`, async (request) => {
      const { id } = request.params as { id: string };
      this.asked.push(id);
      if (this.isBroken) throw new ServiceError('internal_error');
      const route = this.sessions.get(id);
      if (route === undefined) throw new ServiceError('session_not_found');
      return route;
    });
  }

  async start(): Promise<string> {
    await this.#app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = this.#app.server.address() as AddressInfo;
    return `https://127.0.0.1:${port}`;
  }

  async stop(): Promise<void> {
    this.#app.server.closeAllConnections();
    await this.#app.close();
  }
}
