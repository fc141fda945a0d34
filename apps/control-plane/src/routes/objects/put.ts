import { ServiceError } from '@svc/contract';
import { acceptStreamOnly, clientGoneSignal } from '@svc/service-kit';
import { onObjects } from '../../objects/object-failures.ts';
import { openUpload } from '../../sandboxes/upload-body.ts';
import type { Route } from '../../services.ts';
import { isUploadKey } from '../../workspaces/object-keys.ts';
import { UploadPutter } from './put-upload.ts';
import { OBJECT_ROUTE, ObjectParams, ObjectQuery } from './url.ts';

/** `PUT /objects/{key}`: stores an object for the bearer of a presigned URL. The body has any media type. */
export const putObject: Route<'objects' | 'workspaces' | 'limits'> = (app, services) => {
  // A separate scope, since the body is not JSON.
  app.register(async (scope) => {
    acceptStreamOnly(scope, '*');
    addRoute(scope as typeof app, services);
  });
};

const addRoute: Route<'objects' | 'workspaces' | 'limits'> = (
  app,
  { objects: { store, urls }, workspaces, limits },
) => {
  if (urls === undefined) return;
  const uploads = new UploadPutter({ store, workspaces });
  app.put(
    OBJECT_ROUTE,
    { schema: { hide: true, params: ObjectParams, querystring: ObjectQuery } },
    async (request, reply) => {
      const key = request.params['*'];
      const signal = clientGoneSignal(reply);
      await onObjects(async () => {
        const { size } = urls.verify('PUT', key, request.query);
        // A size that the service itself has chosen may exceed what customers may upload.
        const body = openUpload(request.raw, Math.max(size ?? 0, limits.uploadBytes));
        if (body.length === undefined) throw new ServiceError('length_required');
        if (size !== undefined && size !== body.length) {
          throw new ServiceError('object_size_mismatch');
        }
        const target = isUploadKey(key) ? uploads : store;
        await target.put(key, body.source, { size: body.length, signal });
      });
      return reply.code(200).send();
    },
  );
};
