import { createHash } from 'node:crypto';
import type { LlmDialect } from '@svc/contract';

const DIGEST_CHARS = 8;

/**
 * The first segment of the path of an agent's model requests: the dialect and, for a customer's own endpoint, a digest of
 * its URL. It tells the requests of a task that began before a rotation changed the endpoint from those of later tasks.
 */
export function llmRoute(dialect: LlmDialect, baseUrl: string | undefined): string {
  if (baseUrl === undefined) return dialect;
  const digest = createHash('sha256').update(baseUrl).digest('hex');
  return `${dialect}.${digest.slice(0, DIGEST_CHARS)}`;
}
