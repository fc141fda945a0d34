import type { WorkspaceScope } from '@svc/store';
import type { FastifyRequest } from 'fastify';
import { callerOf } from '../../auth/caller.ts';

/** Path of the routes of one workspace. */
export const WORKSPACE_ROUTE = '/v1/workspaces/:app_id/:capset_id';
/** Path of the routes of one file. */
export const FILE_ROUTE = `${WORKSPACE_ROUTE}/files/*`;

/** The workspace of a request, which always belongs to its caller. */
export function scopeOf(
  request: FastifyRequest,
  params: { readonly app_id: string; readonly capset_id: string },
): WorkspaceScope {
  return {
    tenantId: callerOf(request).tenantId,
    appId: params.app_id,
    capsetId: params.capset_id,
  };
}
