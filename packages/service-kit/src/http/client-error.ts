import type { Socket } from 'node:net';
import { ERRORS, type ErrorCode, makeProblem, PROBLEM_MEDIA_TYPE } from '@svc/contract';
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.ts';

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Failures of TLS handshakes, for which no response can be sent. */
const TLS_FAILURE = /^ERR_(?:SSL|TLS)_/;

/** Answers requests that Node's HTTP parser rejects before Fastify sees them. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  const { code: failure = '' } = error;
  if (failure === 'ECONNRESET' || TLS_FAILURE.test(failure) || !socket.writable) {
    socket.destroy();
    return;
  }
  const code = CODES[failure] ?? 'bad_request';
  const requestId = requestIdOf({ headers: {} });
  const body = JSON.stringify(makeProblem(code, requestId));
  const head = [
    `HTTP/1.1 ${ERRORS[code].status} ${ERRORS[code].title}`,
    `content-type: ${PROBLEM_MEDIA_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `${REQUEST_ID_HEADER}: ${requestId}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
