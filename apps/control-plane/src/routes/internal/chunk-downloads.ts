import { ChunkUrls, INTERNAL_PREFIX, NamedChunks, SessionParams } from '@svc/contract';
import type { Route } from '../../services.ts';
import { chunksOwnerOf } from './chunks-owner.ts';

/** `POST /internal/v1/sessions/{id}/chunks/downloads`: the URLs by which a worker downloads chunks. */
export const chunkDownloads: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/chunks/downloads`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: SessionParams,
        body: NamedChunks,
        response: { 200: ChunkUrls },
      },
    },
    (request) => sessions.chunks.locate(chunksOwnerOf(request, request.body), request.body),
  );
};
