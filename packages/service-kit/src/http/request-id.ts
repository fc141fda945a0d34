import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance } from 'fastify';

export const REQUEST_ID_HEADER = 'x-request-id';

/** The ids that can be echoed in headers, logs and error bodies without escaping. */
const SANE = /^[A-Za-z0-9._:/+=@-]{1,128}$/;

/** The caller's request id if it is valid, otherwise a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const sent = request.headers[REQUEST_ID_HEADER];
  return typeof sent === 'string' && SANE.test(sent) ? sent : randomUUID();
}

/** Sets the request's id on every response. Call it before any hook that responds. */
export function sendRequestIds(app: Pick<FastifyInstance, 'addHook'>): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID_HEADER, request.id);
    done();
  });
}
