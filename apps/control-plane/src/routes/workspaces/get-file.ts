import {
  OCTET_STREAM_MEDIA_TYPE,
  PresignedUrl,
  WorkspaceFileParams,
  WorkspaceFileQuery,
} from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { Type } from 'typebox';
import { onObjects } from '../../objects/object-failures.ts';
import { openForRequest, sendObject } from '../../objects/send-object.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_ACCOUNT } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { FILE_PROBLEMS } from './problems.ts';
import { FILE_ROUTE, filePathOf, scopeOf } from './scope.ts';

const BYTES = { [OCTET_STREAM_MEDIA_TYPE]: { schema: Type.Unsafe({ format: 'binary' }) } };

/** `GET /v1/workspaces/{app_id}/{capset_id}/files/{path}`: a URL for the bytes of a file, or the bytes themselves. */
export const getWorkspaceFile: Route<'auth' | 'workspaces'> = (app, { auth, workspaces }) => {
  app.get(
    FILE_ROUTE,
    {
      onRequest: auth.account,
      // HEAD would read the whole file.
      exposeHeadRoute: false,
      schema: {
        operationId: 'getWorkspaceFile',
        tags: ['Workspaces'],
        summary: 'Download a file of a workspace',
        description:
          'Answers with a presigned URL. With `Accept: application/octet-stream`, it answers with the bytes, or with those of a `Range`.',
        security: BY_ACCOUNT,
        params: WorkspaceFileParams,
        querystring: WorkspaceFileQuery,
        response: {
          200: {
            description: 'A URL for the bytes of the file, or the bytes.',
            content: { 'application/json': { schema: PresignedUrl }, ...BYTES },
          },
          206: { description: 'A range of the bytes.', content: BYTES },
          ...authenticatedProblems(
            ...FILE_PROBLEMS,
            'workspace_file_not_found',
            'object_not_found',
            'range_not_satisfiable',
          ),
        },
      },
    },
    async (request, reply) => {
      const scope = scopeOf(request, request.params);
      const path = filePathOf(request);
      const signal = clientGoneSignal(reply);
      if (!wantsBytes(request.headers.accept)) return workspaces.url(scope, path, signal);
      const source = await workspaces.source(scope, path, signal);
      const object = await onObjects(() => openForRequest(source, request, signal));
      return sendObject(object, reply);
    },
  );
};

/** Whether the first of the two media types that a client accepts is that of bytes. */
function wantsBytes(accept = ''): boolean {
  const types = accept.split(',').map((part) => part.split(';')[0]?.trim().toLowerCase());
  const first = types.find((type) => type === OCTET_STREAM_MEDIA_TYPE || type === JSON_TYPE);
  return first === OCTET_STREAM_MEDIA_TYPE;
}

const JSON_TYPE = 'application/json';
