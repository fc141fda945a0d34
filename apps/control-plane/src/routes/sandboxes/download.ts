import { FileQuery, OCTET_STREAM_MEDIA_TYPE, SandboxParams } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { Type } from 'typebox';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import type { Route } from '../../services.ts';
import { PATH_PROBLEMS, WORKER_PROBLEMS } from './problems.ts';

/** `GET /v1/sandboxes/{id}/files`: streams a file from the worker. */
export const downloadFile: Route<'auth' | 'sandboxes'> = (app, { auth, sandboxes }) => {
  app.get(
    '/v1/sandboxes/:id/files',
    {
      onRequest: auth.apiKey,
      // HEAD would read the whole file.
      exposeHeadRoute: false,
      schema: {
        operationId: 'downloadFile',
        tags: ['Files'],
        summary: 'Download a file',
        security: BY_API_KEY,
        params: SandboxParams,
        querystring: FileQuery,
        response: {
          200: {
            description: 'The bytes of the file.',
            content: { [OCTET_STREAM_MEDIA_TYPE]: { schema: Type.Unsafe({ format: 'binary' }) } },
          },
          ...authenticatedProblems(
            ...WORKER_PROBLEMS,
            ...PATH_PROBLEMS,
            'too_many_operations',
            'file_not_found',
            'disk_full',
          ),
        },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const gone = clientGoneSignal(reply);
      const file = await sandboxes.operations.download(
        callerOf(request),
        params.id,
        query.path,
        gone,
      );
      if (file.contentLength !== undefined) reply.header('content-length', file.contentLength);
      return reply.type(OCTET_STREAM_MEDIA_TYPE).send(file.body);
    },
  );
};
