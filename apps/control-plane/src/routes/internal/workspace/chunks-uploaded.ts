import { NamedChunks, WorkerSandboxParams } from '@svc/contract';
import type { Route } from '../../../services.ts';
import { MOUNT_ROUTE, mountOf } from './mount-request.ts';

/** `POST …/workspace/chunks/uploaded`: notes that a worker has uploaded these chunks. */
export const workspaceChunksUploaded: Route<'componentAuth' | 'mountedWorkspaces'> = (
  app,
  { componentAuth, mountedWorkspaces },
) => {
  app.post(
    `${MOUNT_ROUTE}/chunks/uploaded`,
    {
      onRequest: componentAuth.worker,
      schema: { hide: true, params: WorkerSandboxParams, body: NamedChunks },
    },
    async (request, reply) => {
      await mountedWorkspaces.chunks.confirm(mountOf(request, request.body), request.body);
      return reply.code(204).send();
    },
  );
};
