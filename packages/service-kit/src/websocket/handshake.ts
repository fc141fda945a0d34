import type { IncomingMessage } from 'node:http';
import { ServiceError } from '@svc/contract';

const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** The version of RFC 6455, the only one supported. */
const VERSION = '13';

/**
 * Checks that a request is a well-formed WebSocket handshake.
 * @throws ServiceError `route_not_found` for another protocol, `bad_request` for a malformed handshake
 */
export function checkHandshake({
  headers,
  method,
}: Pick<IncomingMessage, 'headers' | 'method'>): void {
  if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket') {
    throw new ServiceError('route_not_found', 'Open this address as a WebSocket.');
  }
  const key = headers['sec-websocket-key'];
  const isWellFormed = key !== undefined && KEY.test(key);
  if (!isWellFormed || headers['sec-websocket-version'] !== VERSION) {
    throw new ServiceError(
      'bad_request',
      'Send Sec-WebSocket-Key and Sec-WebSocket-Version 13, as a WebSocket client does.',
      { headers: { 'sec-websocket-version': VERSION } },
    );
  }
}
