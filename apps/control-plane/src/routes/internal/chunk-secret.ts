import { ChunkSecret, ChunkSecretQuery, INTERNAL_PREFIX, SessionParams } from '@svc/contract';
import type { Route } from '../../services.ts';
import { chunksOwnerOf } from './chunks-owner.ts';

/** `GET /internal/v1/sessions/{id}/chunk-secret`: the secret of a session's chunks, for the worker of its sandbox. */
export const chunkSecret: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.get(
    `${INTERNAL_PREFIX}/sessions/:id/chunk-secret`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: SessionParams,
        querystring: ChunkSecretQuery,
        response: { 200: ChunkSecret },
      },
    },
    (request) => sessions.chunks.secret(chunksOwnerOf(request, request.query)),
  );
};
