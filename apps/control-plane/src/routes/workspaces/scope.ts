import {
  checkWorkspacePath,
  isWorkspacePath,
  ServiceError,
  type WorkspaceFileParams,
  type WorkspaceFileQuery,
} from '@svc/contract';
import type { WorkspaceScope } from '@svc/store';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
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

/** The path that a request names. @throws ServiceError `workspace_path_invalid` */
export function filePathOf({
  params: { '*': text },
  query: { path_base64: encoded },
}: FileRequest): Buffer {
  if (encoded === undefined) {
    checkWorkspacePath(text);
    return Buffer.from(text);
  }
  const path = Buffer.from(encoded, 'base64url');
  if (text === '' && isWorkspacePath(path)) return path;
  throw new ServiceError('workspace_path_invalid');
}

interface FileRequest {
  readonly params: Static<typeof WorkspaceFileParams>;
  readonly query: WorkspaceFileQuery;
}
