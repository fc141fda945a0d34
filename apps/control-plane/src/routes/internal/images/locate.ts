import { INTERNAL_PREFIX, LocatedImage, LocateImageRequest } from '@svc/contract';
import type { Route } from '../../../services.ts';

/** `POST /internal/v1/images/locate`: the newest manifest of a VM image in the object store. */
export const locateImage: Route<'componentAuth' | 'storedImages'> = (
  app,
  { componentAuth, storedImages },
) => {
  app.post(
    `${INTERNAL_PREFIX}/images/locate`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, body: LocateImageRequest, response: { 200: LocatedImage } },
    },
    (request) => storedImages.locate(request.body),
  );
};
