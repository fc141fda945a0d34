import { ServiceError } from '@svc/contract';
import type { KeyedSlots } from '@svc/service-kit/concurrency';
import type { FastifyReply } from 'fastify';

/** Takes a slot until the connection has the answer or is gone. @throws ServiceError `too_many_requests` */
export function takeUntilAnswered(slots: KeyedSlots, key: string, reply: FastifyReply): void {
  const release = slots.take(key);
  if (release === undefined) throw new ServiceError('too_many_requests');
  onceAnswered(reply, release);
}

/** Calls `release` when the connection has the answer or is gone. */
export function onceAnswered({ raw }: FastifyReply, release: () => void): void {
  if (raw.closed) release();
  else raw.once('close', release);
}
