import { INTERNAL_PREFIX, LocatedImage, LocateImageRequest } from '@svc/contract';
import type { Route } from '../../../services.ts';

/** `POST /internal/v1/images/locate`: the newest manifest of a VM image in the object store. */
export const locateImage: Route<'workerAuth' | 'storedImages'> = (
  app,
  { workerAuth, storedImages },
) => {
  app.post(
    `${INTERNAL_PREFIX}/images/locate`,
    {
      onRequest: workerAuth.hook,
      schema: { hide: true, body: LocateImageRequest, response: { 200: LocatedImage } },
    },
    (request) => storedImages.locate(request.body),
  );
};
