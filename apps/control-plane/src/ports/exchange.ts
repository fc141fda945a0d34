import {
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
} from 'node:http';
import { type Duplex, pipeline, type Readable } from 'node:stream';
import { ServiceError } from '@svc/contract';
import { untilAborted } from '@svc/service-kit/concurrency';

/** Headers of a guest beyond this make its answer unusable. */
const MAX_HEADER_BYTES = 32 * 1024;

/** A request to the server in a guest. */
export interface GuestRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  /** Undefined when there is none. */
  readonly body: Readable | undefined;
  /** The longest silence of the server, in milliseconds. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

/** The answer to a request; with `socket` when the server has accepted an upgrade. */
export interface GuestAnswer {
  readonly response: IncomingMessage;
  readonly socket?: Duplex;
}

/**
 * Sends one request over a connection to the server in a guest, which serves no other, and returns the head of the
 * answer. Closing the response closes the connection.
 * @throws ServiceError `port_bad_response` for an answer that is not HTTP, `port_timeout`; the reason of `signal`
 */
export async function exchange(connection: Duplex, asked: GuestRequest): Promise<GuestAnswer> {
  const { signal, body, idleMs, ...head } = asked;
  const answered = Promise.withResolvers<GuestAnswer>();
  const cut = () => void connection.destroy();
  signal.addEventListener('abort', cut, { once: true });
  connection.once('close', () => signal.removeEventListener('abort', cut));
  try {
    signal.throwIfAborted();
    const call = request({
      ...head,
      createConnection: () => connection,
      setHost: false,
      maxHeaderSize: MAX_HEADER_BYTES,
    });
    listen(call, answered, idleMs);
    if (body === undefined) call.end();
    else send(body, call);
    return checked(await untilAborted(answered.promise, signal));
  } catch (error) {
    cut();
    throw signal.aborted ? signal.reason : asPortError(error);
  }
}

function listen(
  call: ClientRequest,
  { resolve, reject }: PromiseWithResolvers<GuestAnswer>,
  idleMs: number,
): void {
  call.setTimeout(idleMs, () => call.destroy(new ServiceError('port_timeout')));
  call.on('error', reject);
  call.on('response', (response) => resolve({ response }));
  call.on('upgrade', (response, socket, head) => {
    socket.on('error', () => socket.destroy());
    if (head.length > 0) socket.unshift(head);
    resolve({ response, socket });
  });
}

/** A server may answer before it has read the whole body. Then the rest is not for it. */
function send(body: Readable, call: ClientRequest): void {
  pipeline(body, call, () => undefined);
}

function checked(answer: GuestAnswer): GuestAnswer {
  const { statusCode = 0 } = answer.response;
  const isUpgrade = answer.socket !== undefined;
  if (isUpgrade ? statusCode === 101 : statusCode >= 200 && statusCode <= 599) return answer;
  throw new ServiceError('port_bad_response');
}

function asPortError(error: unknown): unknown {
  if (error instanceof ServiceError) return error;
  return new ServiceError('port_bad_response', undefined, { cause: error });
}
