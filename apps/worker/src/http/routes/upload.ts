import type { Readable } from 'node:stream';
import {
  checkPath,
  declaredUploadBytes,
  FileQuery,
  OCTET_STREAM_MEDIA_TYPE,
  ServiceError,
  UploadResponse,
  WorkerSandboxParams,
} from '@svc/contract';
import { acceptStreamOnly, type HttpServer } from '@svc/service-kit';
import { upload } from '../../files/upload.ts';
import { callerSignal } from '../caller-signal.ts';
import type { WorkerContext } from '../context.ts';

/** `POST /sandboxes/:id/files?path=`: the body is the file, which appears complete or not at all. */
export function uploadRoute(app: HttpServer, context: WorkerContext): void {
  acceptStreamOnly(app, OCTET_STREAM_MEDIA_TYPE);
  app.post(
    '/sandboxes/:id/files',
    {
      schema: {
        params: WorkerSandboxParams,
        querystring: FileQuery,
        response: { 200: UploadResponse },
      },
    },
    async (request, reply) => {
      const { path } = request.query;
      checkPath(path);
      const sandbox = context.registry.get(request.params.id);
      declaredUploadBytes(request.headers['content-length'], context.transfers.maxUploadBytes);
      // Fastify calls no parser for a request without a media type and without a body.
      if (request.body === undefined || request.body === null) {
        throw new ServiceError('missing_body');
      }
      const source = request.body as Readable;
      await upload(sandbox, path, source, context.transfers, callerSignal(reply, context));
      return { status: 'uploaded' as const };
    },
  );
}
