import { looksLikeApiKey, ServiceError } from '@svc/contract';
import type { Store } from '@svc/store';
import type { FastifyRequest } from 'fastify';
import type { AccountTokens } from './account-tokens.ts';
import { bearerOf } from './bearer.ts';
import type { Caller } from './caller.ts';

type RequestHook = (request: FastifyRequest) => Promise<void>;

/**
 * Hooks for `onRequest`, which runs before a body is read. A credential of the wrong kind counts as none.
 */
export interface Authenticators {
  readonly apiKey: RequestHook;
  readonly account: RequestHook;
  readonly apiKeyOrAccount: RequestHook;
}

export function createAuthenticators(store: Store, accounts: AccountTokens): Authenticators {
  const byApiKey = apiKeyOwner(store);
  const byAccount = async (credential: string): Promise<Caller> => {
    if (looksLikeApiKey(credential)) throw new ServiceError('unauthorized');
    return { tenantId: await accounts.verify(credential) };
  };
  const byEither = (credential: string): Promise<Caller> =>
    looksLikeApiKey(credential) ? byApiKey(credential) : byAccount(credential);

  return {
    apiKey: setCaller(byApiKey),
    account: setCaller(byAccount),
    apiKeyOrAccount: setCaller(byEither),
  };
}

/** The hook for API keys only, for servers without accounts. */
export function createApiKeyHook(store: Pick<Store, 'apiKeys'>): RequestHook {
  return setCaller(apiKeyOwner(store));
}

function apiKeyOwner(store: Pick<Store, 'apiKeys'>): (credential: string) => Promise<Caller> {
  return async (credential) => {
    const owner = looksLikeApiKey(credential)
      ? await store.apiKeys.findOwner(credential)
      : undefined;
    if (owner === undefined) throw new ServiceError('unauthorized');
    return owner;
  };
}

function setCaller(authenticate: (credential: string) => Promise<Caller>): RequestHook {
  return async (request) => {
    request.caller = await authenticate(bearerOf(request));
  };
}
