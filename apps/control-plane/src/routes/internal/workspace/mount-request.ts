import { INTERNAL_PREFIX, type WorkerSandboxParams } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import { workerOf } from '../../../auth/component-authenticator.ts';
import type { MountRequest } from '../../../workspaces/mounted/find-mount.ts';

/** Path of the routes of a sandbox's workspace. */
export const MOUNT_ROUTE = `${INTERNAL_PREFIX}/sandboxes/:id/workspace`;

/** The sandbox whose workspace a worker asks for. @throws ServiceError `unauthorized` */
export function mountOf(
  request: FastifyRequest & { readonly params: WorkerSandboxParams },
  { generation }: Pick<MountRequest, 'generation'>,
): MountRequest {
  return { workerId: workerOf(request), vmId: request.params.id, generation };
}
