import { looksLikeApiKey, ServiceError } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import type { FairStarts } from '@svc/service-kit/concurrency';
import type { Store } from '@svc/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccountTokens } from './account-tokens.ts';
import { bearerOf } from './bearer.ts';
import { type Caller, callerOf } from './caller.ts';
import { setStatementOwner } from './statement-owners.ts';
import type { TenantRequests } from './tenant-requests.ts';

/** Each of these that an answer has counts as another request: a list of large records takes as long as many requests. */
const LARGE_ANSWER_BYTES = 64 * 1024;

type RequestHook = (request: FastifyRequest) => Promise<void>;
type CountingHook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Hooks for `onRequest`, which runs before a body is read. A credential of the wrong kind counts as none. All but
 * `apiKeyUncounted` count the requests in progress of a tenant, and throw `too_many_requests` at the limit. Those of a tenant
 * that sends very many wait for their turns; see {@link FairStarts}.
 */
export interface Authenticators {
  readonly apiKey: CountingHook;
  /** For routes with a limit of their own. */
  readonly apiKeyUncounted: RequestHook;
  readonly account: CountingHook;
  readonly apiKeyOrAccount: CountingHook;
}

type Authenticate = (credential: string) => Promise<Caller>;

export function createAuthenticators(
  store: Store,
  accounts: AccountTokens,
  requests: TenantRequests,
  starts: Pick<FairStarts, 'begin' | 'spend'>,
): Authenticators {
  const byApiKey = apiKeyOwner(store);
  const byAccount = async (credential: string): Promise<Caller> => {
    if (looksLikeApiKey(credential)) throw new ServiceError('unauthorized');
    return { tenantId: await accounts.verify(credential) };
  };
  const byEither = (credential: string): Promise<Caller> =>
    looksLikeApiKey(credential) ? byApiKey(credential) : byAccount(credential);

  const counted = (authenticate: Authenticate): CountingHook => {
    const hook = setCaller(authenticate);
    return async (request, reply) => {
      await hook(request);
      requests.count(request, reply);
      // Nothing that a tenant does keeps it from giving back what it has.
      if (request.method === 'DELETE') return;
      const { tenantId } = callerOf(request);
      await starts.begin(tenantId, clientGoneSignal(reply));
      reply.raw.once('close', () => {
        const bytes = Number(reply.getHeader('content-length') ?? 0);
        starts.spend(tenantId, Math.floor(bytes / LARGE_ANSWER_BYTES));
      });
    };
  };
  return {
    apiKey: counted(byApiKey),
    apiKeyUncounted: setCaller(byApiKey),
    account: counted(byAccount),
    apiKeyOrAccount: counted(byEither),
  };
}

/** The hook for API keys only, for servers without accounts. */
export function createApiKeyHook(store: Pick<Store, 'apiKeys'>): RequestHook {
  return setCaller(apiKeyOwner(store));
}

function apiKeyOwner(store: Pick<Store, 'apiKeys'>): Authenticate {
  return async (credential) => {
    const owner = looksLikeApiKey(credential)
      ? await store.apiKeys.findOwner(credential)
      : undefined;
    if (owner === undefined) throw new ServiceError('unauthorized');
    return owner;
  };
}

function setCaller(authenticate: Authenticate): RequestHook {
  return async (request) => {
    const caller = await authenticate(bearerOf(request));
    request.caller = caller;
    setStatementOwner(request, { pool: 'customers', key: caller.tenantId });
  };
}
