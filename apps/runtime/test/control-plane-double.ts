import type { AddressInfo } from 'node:net';
import {
  CONTROL_PLANE_NAME,
  INTERNAL_PREFIX,
  SESSION_TOKEN_HEADER,
  ServiceError,
  type SessionRoute,
} from '@svc/contract';
import {
  type CertificatePair,
  type ComponentIdentity,
  createHttpServer,
  createTokenVerifier,
  deriveControlPlaneKey,
  findAmong,
  type HttpServer,
  mintHopToken,
  RequestDrain,
  type Secret,
  SessionTokens,
  sessionTokenKey,
} from '@svc/service-kit';
import type { FastifyRequest } from 'fastify';
import { pino } from 'pino';

export interface ControlPlaneDoubleOptions {
  /** The cluster secret. */
  readonly secret: Secret;
  /** The only runtime host that has enrolled. */
  readonly identity: ComponentIdentity;
  readonly tls: CertificatePair;
}

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
  /** Refuses the identity of the runtime host while set. */
  refusesIdentity = false;
  readonly #app: HttpServer;

  constructor({ secret, identity, tls }: ControlPlaneDoubleOptions) {
    this.#app = createHttpServer({ logger: pino({ level: 'silent' }), tls });
    this.drain.watch(this.#app);
    const verify = createTokenVerifier(findAmong(identity.key), CONTROL_PLANE_NAME);
    const tokens = new SessionTokens([sessionTokenKey(secret)]);
    const key = deriveControlPlaneKey(secret);
    this.#app.get('/readyz', async () => {
      if (this.isBroken) throw new ServiceError('internal_error');
      return { status: 'ready' };
    });
    this.#app.addHook('onRequest', async ({ url, headers }) => {
      if (!url.startsWith(INTERNAL_PREFIX)) return;
      const { issuer } = await verify(headers.authorization);
      if (this.refusesIdentity || issuer !== identity.id)
        throw new ServiceError('component_unauthorized');
    });
    const routeOf = async (id: string, { headers }: Pick<FastifyRequest, 'headers'>) => {
      const claims = await tokens.verify(headers[SESSION_TOKEN_HEADER]?.toString());
      const route = this.sessions.get(id);
      if (route === undefined) throw new ServiceError('unauthorized');
      if (claims.chat_session_id !== id || claims.chat_session_id !== route.chat_session_id) {
        throw new ServiceError('session_token_mismatch');
      }
      if (claims.user_id !== route.tenant_id) throw new ServiceError('session_of_another_tenant');
      const { worker, tenant_id: user_id, app_id, set_id, cua_enabled } = route;
      if (worker === undefined) return route;
      const facts = { user_id, app_id, set_id, chat_session_id: id, cua_enabled };
      const token = await mintHopToken(await key, facts, worker.worker_id);
      return { ...route, worker: { ...worker, token } };
    };
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
      const recovered = this.recovered.get(id);
      if (recovered !== undefined) this.sessions.set(id, recovered);
      return routeOf(id, request);
    });
    this.#app.get(`${INTERNAL_PREFIX}/sessions/:id`, async (request) => {
      const { id } = request.params as { id: string };
      this.asked.push(id);
      if (this.isBroken) throw new ServiceError('internal_error');
      return routeOf(id, request);
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
