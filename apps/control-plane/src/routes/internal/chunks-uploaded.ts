import { INTERNAL_PREFIX, NamedChunks, SessionParams } from '@svc/contract';
import type { Route } from '../../services.ts';
import { chunksOwnerOf } from './chunks-owner.ts';

/** `POST /internal/v1/sessions/{id}/chunks/uploaded`: notes that a worker has uploaded these chunks. */
export const chunksUploaded: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/chunks/uploaded`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, params: SessionParams, body: NamedChunks },
    },
    async (request, reply) => {
      await sessions.chunks.confirm(chunksOwnerOf(request, request.body), request.body);
      return reply.code(204).send();
    },
  );
};
