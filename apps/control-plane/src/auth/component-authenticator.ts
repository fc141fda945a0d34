import {
  CONTROL_PLANE_NAME,
  type ComponentKind,
  isServiceError,
  ServiceError,
} from '@svc/contract';
import { createTokenVerifier, trustCaller } from '@svc/service-kit';
import type { ComponentKey, Store } from '@svc/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ComponentRequests, hasLargeBody, limitBodyTime } from './component-requests.ts';
import { setStatementOwner } from './statement-owners.ts';

const REMEMBERED_MS = 10_000;
const MOST_REMEMBERED = 65_536;

/** A worker or a runtime host that has authenticated itself. */
export interface Component {
  readonly kind: ComponentKind;
  readonly id: string;
}

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Authenticates the callers of internal routes, and bounds what one of them has in progress: see {@link ComponentRequests}.
 * A large body is not read before its turn.
 */
export interface ComponentAuthenticator {
  /** For the routes of workers. */
  readonly worker: Hook;
  /** For the routes of workers with large answers, each of which takes a turn. */
  readonly workerInTurn: Hook;
  /**
   * For heartbeats, which are most of the load: reads the key of a worker at most every 10 seconds. The statement that
   * records a heartbeat refuses a worker that is revoked, at once.
   */
  readonly heartbeat: Hook;
  /** For the routes of runtime hosts. */
  readonly runtime: Hook;
  /** For the routes of both. */
  readonly any: Hook;
}

declare module 'fastify' {
  interface FastifyRequest {
    component: Component | undefined;
  }
}

/** Authenticates components by tokens that they sign with the key that they have enrolled. */
export function createComponentAuthenticator(
  components: Pick<Store['components'], 'keyOf'>,
): ComponentAuthenticator {
  const requests = new ComponentRequests();
  const read = (id: string) => components.keyOf(id);
  const hookFor =
    (kinds: readonly ComponentKind[], keyOf = read, isLarge = hasLargeBody): Hook =>
    async (request, reply) => {
      let kind: ComponentKind | undefined;
      const verify = createTokenVerifier(async ({ issuer, keyId }) => {
        const key = await keyOf(issuer);
        if (key === undefined || key.keyId !== keyId) return undefined;
        kind = key.kind;
        return { kty: 'OKP', crv: 'Ed25519', x: key.publicKey };
      }, CONTROL_PLANE_NAME);
      const { issuer: id } = await verify(request.headers.authorization).catch(refuse);
      if (kind === undefined || !kinds.includes(kind)) {
        throw new ServiceError('component_unauthorized');
      }
      request.component = { kind, id };
      trustCaller();
      setStatementOwner(request, { pool: 'service', key: id });
      requests.count(id, reply);
      if (isLarge(request)) await requests.awaitTurn(id, request, reply);
      limitBodyTime(request.raw);
    };
  return {
    worker: hookFor(['worker']),
    workerInTurn: hookFor(['worker'], read, () => true),
    heartbeat: hookFor(['worker'], remembering(components)),
    runtime: hookFor(['runtime']),
    any: hookFor(['worker', 'runtime']),
  };
}

/** Looks keys up, and remembers them for a short time. */
function remembering(components: Pick<Store['components'], 'keyOf'>) {
  const known = new Map<string, { readonly key: ComponentKey; readonly until: number }>();
  return async (id: string): Promise<ComponentKey | undefined> => {
    const found = known.get(id);
    if (found !== undefined && performance.now() < found.until) return found.key;
    known.delete(id);
    const key = await components.keyOf(id);
    if (known.size >= MOST_REMEMBERED) known.clear();
    if (key !== undefined) known.set(id, { key, until: performance.now() + REMEMBERED_MS });
    return key;
  };
}

/** Its own code, so that a runtime host can tell its own credential from that of its client. */
function refuse(cause: unknown): never {
  if (!isServiceError(cause) || cause.code !== 'unauthorized') throw cause;
  throw new ServiceError('component_unauthorized', undefined, { cause });
}

/** Checks that a worker reports only under its own id. @throws ServiceError `worker_id_mismatch` */
export function requireWorker(request: FastifyRequest, workerId: string): void {
  if (workerOf(request) !== workerId) throw new ServiceError('worker_id_mismatch');
}

/** The worker that calls an internal route. @throws ServiceError `component_unauthorized` */
export function workerOf({ component }: FastifyRequest): string {
  if (component?.kind !== 'worker') throw new ServiceError('component_unauthorized');
  return component.id;
}

/** The runtime host that calls an internal route. @throws ServiceError `component_unauthorized` */
export function runtimeOf({ component }: FastifyRequest): string {
  if (component?.kind !== 'runtime') throw new ServiceError('component_unauthorized');
  return component.id;
}
