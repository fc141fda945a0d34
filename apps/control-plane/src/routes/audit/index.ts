import type { Route } from '../../services.ts';
import { listAudit } from './list.ts';

export const auditRoutes: readonly Route[] = [listAudit];
