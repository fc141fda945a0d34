import type { IncomingMessage } from 'node:http';
import { LIMITS, ServiceError } from '@svc/contract';
import { clientGoneSignal } from '@svc/service-kit';
import { KeyedSlots, openDeadline, Slots } from '@svc/service-kit/concurrency';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { onceAnswered, takeUntilAnswered } from './request-slots.ts';

/** Of one component. A worker sends at most 18 requests at a time, and a runtime host 48. */
const MOST_REQUESTS = 128;
/** Of these, how many large ones of one route. */
const MOST_LARGE = 2;
/** Less than a worker waits for an answer, so that it knows that it may try again. */
const TURN_MS = 20_000;
/** Workers give up earlier. Frees what a connection holds that was lost without a word. */
const BODY_MS = 60_000;

/** Bounds what the requests of one component take of the memory of this control plane. */
export class ComponentRequests {
  readonly #requests = new KeyedSlots(MOST_REQUESTS);
  readonly #large = new Slots(Number.POSITIVE_INFINITY, MOST_LARGE);

  /**
   * Counts an authenticated request of the component `id` until its connection has the answer or is gone.
   * @throws ServiceError `too_many_requests`
   */
  count(id: string, reply: FastifyReply): void {
    takeUntilAnswered(this.#requests, id, reply);
  }

  /**
   * Waits until few large requests of the component to the same route are in progress. Nothing reads the body meanwhile,
   * so its client stops sending. @throws ServiceError `too_many_requests` after 20 seconds, or when the client is gone
   */
  async awaitTurn(id: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    using deadline = openDeadline(clientGoneSignal(reply), TURN_MS);
    try {
      const key = `${id} ${request.routeOptions.url}`;
      onceAnswered(reply, await this.#large.take(deadline.signal, key));
    } catch (cause) {
      throw new ServiceError('too_many_requests', undefined, { cause });
    }
  }
}

/** Whether a request may have a body that is larger than those of most routes. */
export function hasLargeBody({ headers, routeOptions }: FastifyRequest): boolean {
  const declared = headers['content-length'];
  const bytes = declared === undefined ? routeOptions.bodyLimit : Number(declared);
  return Math.min(bytes, routeOptions.bodyLimit) > LIMITS.jsonBodyBytes;
}

/** Closes the connection of a request whose body has not ended after a minute. */
export function limitBodyTime(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.destroy(), BODY_MS).unref();
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}
