import { INTERNAL_PREFIX, LocateBlobsRequest, LocatedBlobs } from '@svc/contract';
import type { Route } from '../../../services.ts';

/** `POST /internal/v1/images/downloads`: the URLs by which a worker downloads blobs of VM images. */
export const imageDownloads: Route<'componentAuth' | 'storedImages'> = (
  app,
  { componentAuth, storedImages },
) => {
  app.post(
    `${INTERNAL_PREFIX}/images/downloads`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, body: LocateBlobsRequest, response: { 200: LocatedBlobs } },
    },
    (request) => storedImages.locateBlobs(request.body),
  );
};
