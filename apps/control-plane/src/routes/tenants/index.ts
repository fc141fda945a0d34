import type { Route } from '../../services.ts';
import { getOwnTenant } from './me.ts';
import { requestCode } from './request-code.ts';
import { verifyTenant } from './verify.ts';

export const tenantRoutes: readonly Route[] = [requestCode, verifyTenant, getOwnTenant];
