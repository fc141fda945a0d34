import type { Route } from '../../services.ts';
import { createTenantKey } from './create.ts';
import { listTenantKeys } from './list.ts';
import { revokeTenantKey } from './revoke.ts';

export const tenantKeyRoutes: readonly Route[] = [createTenantKey, listTenantKeys, revokeTenantKey];
