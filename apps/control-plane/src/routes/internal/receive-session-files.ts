import {
  INTERNAL_PREFIX,
  LIMITS,
  OCTET_STREAM_MEDIA_TYPE,
  ServiceError,
  SessionFilesParams,
  SessionFilesQuery,
} from '@svc/contract';
import { acceptStreamOnly } from '@svc/service-kit';
import { workerOf } from '../../auth/worker-authenticator.ts';
import type { Route } from '../../services.ts';

/** `PUT /internal/v1/sessions/{id}/files/{files_id}`: stores an archive as a stream. */
export const receiveSessionFiles: Route<'workerAuth' | 'sessions'> = (app, services) => {
  // A separate scope, since the body is not JSON.
  app.register(async (scope) => {
    acceptStreamOnly(scope, OCTET_STREAM_MEDIA_TYPE);
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'workerAuth' | 'sessions'> = (app, { workerAuth, sessions }) => {
  app.put(
    `${INTERNAL_PREFIX}/sessions/:id/files/:files_id`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, params: SessionFilesParams, querystring: SessionFilesQuery },
    },
    async (request, reply) => {
      const { params, query, raw } = request;
      const declared = Number(raw.headers['content-length'] ?? 0);
      if (declared > LIMITS.sessionFilesBytes) throw new ServiceError('payload_too_large');
      const files = {
        workerId: workerOf(request),
        sessionId: params.id,
        filesId: params.files_id,
      };
      await sessions.files.receive(files, query.generation, raw);
      return reply.code(204).send();
    },
  );
};
