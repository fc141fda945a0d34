import { clientGoneSignal } from '@svc/service-kit';
import { onObjects } from '../../objects/object-failures.ts';
import { objectSource, openForRequest, sendObject } from '../../objects/send-object.ts';
import type { Route } from '../../services.ts';
import { OBJECT_ROUTE, ObjectParams, ObjectQuery } from './url.ts';

/** `GET /objects/{key}`: streams an object, or a range of it, to the bearer of a presigned URL. */
export const getObject: Route<'objects'> = (app, { objects: { store, urls } }) => {
  if (urls === undefined) return;
  app.get(
    OBJECT_ROUTE,
    {
      // A URL is for one method.
      exposeHeadRoute: false,
      schema: { hide: true, params: ObjectParams, querystring: ObjectQuery },
    },
    async (request, reply) => {
      const key = request.params['*'];
      const signal = clientGoneSignal(reply);
      const object = await onObjects(async () => {
        urls.verify('GET', key, request.query);
        return openForRequest(objectSource(store, key), request, signal);
      });
      return sendObject(object, reply);
    },
  );
};
