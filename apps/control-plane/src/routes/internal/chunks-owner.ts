import type { SessionParams } from '@svc/contract';
import type { FastifyRequest } from 'fastify';
import { workerOf } from '../../auth/component-authenticator.ts';
import type { ChunksOwner } from '../../sessions/files/session-chunks.ts';

/** The session whose chunks a worker asks for, by the start that it names. @throws ServiceError `unauthorized` */
export function chunksOwnerOf(
  request: FastifyRequest & { readonly params: SessionParams },
  { generation }: Pick<ChunksOwner, 'generation'>,
): ChunksOwner {
  return { workerId: workerOf(request), sessionId: request.params.id, generation };
}
