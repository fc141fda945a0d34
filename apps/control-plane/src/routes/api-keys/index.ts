import type { Route } from '../../services.ts';
import { createApiKey } from './create.ts';
import { listApiKeys } from './list.ts';
import { revokeApiKey } from './revoke.ts';

export const apiKeyRoutes: readonly Route[] = [createApiKey, listApiKeys, revokeApiKey];
