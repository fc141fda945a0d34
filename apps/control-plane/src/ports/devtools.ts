import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ServiceError } from '@svc/contract';
import type { PortView } from './port-view.ts';

/** The pages by which a browser in the guest announces its WebSockets, at the host name that it was asked by. */
const PAGES = /^\/json(?:\/(?:version|list|new))?\/?(?:\?.*)?$/;
const MAX_BYTES = 256 * 1024;

/** Whether a response may announce the WebSockets of a browser, whose addresses must be mapped for its client. */
export function announcesWebSockets(response: IncomingMessage, view: PortView): boolean {
  const length = Number(response.headers['content-length'] ?? Number.NaN);
  return (
    PAGES.test(view.path) &&
    response.statusCode === 200 &&
    length <= MAX_BYTES &&
    response.headers['content-encoding'] === undefined &&
    (response.headers['content-type'] ?? '').startsWith('application/json')
  );
}

/** Reads the whole response, which is small, and maps the addresses of WebSockets in it. @throws ServiceError `port_bad_response` */
export async function mapWebSockets(response: Readable, view: PortView): Promise<Buffer> {
  const body = await buffer(response).catch((cause: unknown) => {
    throw new ServiceError('port_bad_response', undefined, { cause });
  });
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8'), mapValue(view)), null, 2));
  } catch (error) {
    if (error instanceof SyntaxError) return body;
    throw error;
  }
}

function mapValue(view: PortView) {
  return (key: string, value: unknown): unknown =>
    key === 'webSocketDebuggerUrl' && typeof value === 'string'
      ? (view.webSocketUrl(value) ?? value)
      : value;
}
