import type { HttpServer } from '@svc/service-kit';
import { onBehalfOf, type StatementOwner } from '@svc/store';
import type { FastifyRequest } from 'fastify';
import { networkOf } from '../tenants/one-time-codes.ts';

declare module 'fastify' {
  interface FastifyRequest {
    statementOwner: StatementOwner | undefined;
  }
}

/**
 * Runs the statements of each request on behalf of its network until it is authenticated, and from then on of its tenant
 * or worker. Call it before adding routes.
 */
export function assignStatementOwners(app: HttpServer): void {
  app.decorateRequest('statementOwner', undefined);
  app.addHook('onRequest', (request, _reply, done) => {
    const owner: StatementOwner = { pool: 'customers', key: networkOf(request.ip) };
    request.statementOwner = owner;
    onBehalfOf(owner, done);
  });
  // A body is read in the context of its connection.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.statementOwner === undefined) done();
    else onBehalfOf(request.statementOwner, done);
  });
}

/** Changes on whose behalf the statements of a request run, also those of its hooks. */
export function setStatementOwner(request: FastifyRequest, owner: Readonly<StatementOwner>): void {
  if (request.statementOwner !== undefined) Object.assign(request.statementOwner, owner);
}
