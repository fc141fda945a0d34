import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { PAGE_POLICY } from '../../billing/local/page.ts';

/** Response schema of a page. */
export const HTML = {
  description: 'The page.',
  content: { 'text/html': { schema: Type.String() } },
} as const;

/** Makes the response a page without scripts. */
export function asPage(reply: FastifyReply): FastifyReply {
  return reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY);
}
