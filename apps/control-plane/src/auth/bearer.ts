import { ServiceError } from '@svc/contract';
import type { FastifyRequest } from 'fastify';

const BEARER = /^Bearer +([\x21-\x7e]{1,8192}) *$/i;

/** The credential of the Authorization header. @throws ServiceError `unauthorized` when there is none */
export function bearerOf(request: FastifyRequest): string {
  const credential = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (credential === undefined) throw new ServiceError('unauthorized');
  return credential;
}
