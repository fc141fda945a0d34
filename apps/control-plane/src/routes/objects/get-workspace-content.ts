import { clientGoneSignal } from '@svc/service-kit';
import { onObjects } from '../../objects/object-failures.ts';
import { openForRequest, sendObject } from '../../objects/send-object.ts';
import type { Route } from '../../services.ts';
import { WORKSPACE_FILES_PATH } from '../../workspaces/workspaces.ts';
import { ObjectParams, ObjectQuery } from './url.ts';

/** `GET /workspace-files/{key}`: streams a file that a sandbox saved, or a range of it, to the bearer of a URL. */
export const getWorkspaceContent: Route<'workspaces'> = (app, { workspaces }) => {
  app.get(
    `${WORKSPACE_FILES_PATH}*`,
    {
      // A URL is for one method.
      exposeHeadRoute: false,
      schema: { hide: true, params: ObjectParams, querystring: ObjectQuery },
    },
    async (request, reply) => {
      const signal = clientGoneSignal(reply);
      const object = await onObjects(async () => {
        const source = await workspaces.sourceOfUrl(request.params['*'], request.query);
        return openForRequest(source, request, signal);
      });
      return sendObject(object, reply);
    },
  );
};
