import { INTERNAL_PREFIX, MissingChunks, NamedChunks, SessionParams } from '@svc/contract';
import type { Route } from '../../services.ts';
import { chunksOwnerOf } from './chunks-owner.ts';

/** `POST /internal/v1/sessions/{id}/chunks/missing`: which chunks of its files a save has to upload. */
export const chunksMissing: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/chunks/missing`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: SessionParams,
        body: NamedChunks,
        response: { 200: MissingChunks },
      },
    },
    (request) => sessions.chunks.missing(chunksOwnerOf(request, request.body), request.body),
  );
};
