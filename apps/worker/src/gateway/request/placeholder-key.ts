import type { IncomingHttpHeaders } from 'node:http';
import { PLACEHOLDER_LLM_KEY } from '@svc/contract';

/**
 * Whether a request has the placeholder in place of the vendor's key, in the header of any dialect. It is no secret, but
 * shows that a program of the sandbox sends the request: a page that a browser in the sandbox shows can send requests to
 * the gateway, and cannot set such a header.
 */
export function hasPlaceholderKey(headers: IncomingHttpHeaders): boolean {
  return (
    headers.authorization === `Bearer ${PLACEHOLDER_LLM_KEY}` ||
    headers['x-api-key'] === PLACEHOLDER_LLM_KEY ||
    headers['x-goog-api-key'] === PLACEHOLDER_LLM_KEY
  );
}
