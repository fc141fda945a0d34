import { ChunkUrls, INTERNAL_PREFIX, SessionParams, UploadChunksRequest } from '@svc/contract';
import type { Route } from '../../services.ts';
import { chunksOwnerOf } from './chunks-owner.ts';

/** `POST /internal/v1/sessions/{id}/chunks/uploads`: the URLs by which a worker uploads chunks. */
export const chunkUploads: Route<'componentAuth' | 'sessions'> = (
  app,
  { componentAuth, sessions },
) => {
  app.post(
    `${INTERNAL_PREFIX}/sessions/:id/chunks/uploads`,
    {
      onRequest: componentAuth.worker,
      schema: {
        hide: true,
        params: SessionParams,
        body: UploadChunksRequest,
        response: { 200: ChunkUrls },
      },
    },
    (request) => sessions.chunks.announce(chunksOwnerOf(request, request.body), request.body),
  );
};
