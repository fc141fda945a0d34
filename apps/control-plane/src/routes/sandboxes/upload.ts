import type { Readable } from 'node:stream';
import { FileQuery, OCTET_STREAM_MEDIA_TYPE, SandboxParams, UploadResponse } from '@svc/contract';
import { acceptStreamOnly, clientGoneSignal } from '@svc/service-kit';
import { Type } from 'typebox';
import { callerOf } from '../../auth/caller.ts';
import { authenticatedProblems } from '../../openapi/problems.ts';
import { BY_API_KEY } from '../../openapi/security.ts';
import { openUpload, refuseMissingBody } from '../../sandboxes/upload-body.ts';
import type { Route } from '../../services.ts';
import { PATH_PROBLEMS, WORKER_PROBLEMS } from './problems.ts';

/** `POST /v1/sandboxes/{id}/files`: streams the body to the worker. */
export const uploadFile: Route<'auth' | 'sandboxes' | 'limits'> = (app, services) => {
  // A separate scope, since the body is not JSON.
  app.register(async (scope) => {
    acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
    scope.addHook('preParsing', refuseMissingBody);
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'auth' | 'sandboxes' | 'limits'> = (app, { auth, sandboxes, limits }) => {
  app.post(
    '/v1/sandboxes/:id/files',
    {
      onRequest: auth.apiKey,
      schema: {
        operationId: 'uploadFile',
        tags: ['Files'],
        summary: 'Upload a file',
        description:
          'The file appears under its name when it is complete. Its parent directory must exist. A symbolic link stays, and its target is written. A body without bytes writes an empty file.',
        security: BY_API_KEY,
        params: SandboxParams,
        querystring: FileQuery,
        body: {
          content: {
            [OCTET_STREAM_MEDIA_TYPE]: { schema: Type.Unsafe<Readable>({ format: 'binary' }) },
          },
        },
        response: { 200: UploadResponse, ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const { params, query } = request;
      const upload = openUpload(request.raw, limits.uploadBytes);
      await sandboxes.operations.upload(
        callerOf(request),
        params.id,
        query.path,
        upload,
        clientGoneSignal(reply),
      );
      return { status: 'uploaded' as const };
    },
  );
};

const PROBLEMS = authenticatedProblems(
  ...WORKER_PROBLEMS,
  ...PATH_PROBLEMS,
  'too_many_operations',
  'missing_body',
  'parent_not_found',
  'parent_not_directory',
  'payload_too_large',
  'unsupported_media_type',
  'disk_full',
);
