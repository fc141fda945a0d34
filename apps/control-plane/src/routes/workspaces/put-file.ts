import { PresignedUrl, WorkspaceFileParams, WorkspaceUploadQuery } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { FILE_PROBLEMS } from './problems.ts';
import { FILE_ROUTE, filePathOf, scopeOf } from './scope.ts';

/** `PUT /v1/workspaces/{app_id}/{capset_id}/files/{path}`: a URL for one upload of a file. */
export const putWorkspaceFile: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.put(
    FILE_ROUTE,
    {
      onRequest: auth.account,
      schema: {
        operationId: 'putWorkspaceFile',
        tags: ['Workspaces'],
        summary: 'Upload a file to a workspace',
        description:
          'Takes no body. PUT the bytes to the URL, with a Content-Length. The file appears, or its new content does, when the upload is complete. A URL is for one upload.',
        security: BY_ACCOUNT,
        params: WorkspaceFileParams,
        querystring: WorkspaceUploadQuery,
        response: {
          200: PresignedUrl,
          ...authenticatedProblems(
            ...FILE_PROBLEMS,
            'workspace_quota_exceeded',
            'workspace_path_conflict',
            'too_many_uploads',
            'payload_too_large',
            'invalid_json',
            'unsupported_media_type',
          ),
        },
      },
    },
    (request, reply) =>
      workspaces.upload(
        scopeOf(request, request.params),
        filePathOf(request),
        request.query.size,
        clientGoneSignal(reply),
      ),
  );
};
