import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { pinCertificate } from '@svc/service-kit/tls';
import { BadAnswer } from './read-answer.ts';
import type { WorkerAddress } from './worker-address.ts';
import { errorFromWorker } from './worker-errors.ts';

/** A request for another protocol. `undici` gives no access to the body of a refusal. */
export interface UpgradeRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocol: string;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/** Opens a connection to a worker for another protocol. @throws BadAnswer, ServiceError, and the errors of `node:https` */
export async function upgradeConnection(
  worker: WorkerAddress,
  { path, headers, protocol, signal }: UpgradeRequest,
): Promise<Duplex> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Duplex>();
  const call = httpsRequest(new URL(path, worker.url), {
    agent: false,
    ...pinCertificate(worker.certificate),
    headers: { ...headers, connection: 'Upgrade', upgrade: protocol },
  });
  const abort = () => void call.destroy(new Error('aborted', { cause: signal.reason }));
  signal.addEventListener('abort', abort, { once: true });
  call.on('error', reject);
  call.once('response', (response) => {
    refusal(worker, response).then(reject, reject);
  });
  call.once('upgrade', (response, socket, head) => {
    socket.on('error', () => socket.destroy());
    if (head.length > 0) socket.unshift(head);
    if (response.headers.upgrade === protocol) resolve(socket);
    else {
      socket.destroy();
      reject(new BadAnswer('the connection has another protocol'));
    }
  });
  call.end();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function refusal(worker: WorkerAddress, response: IncomingMessage): Promise<Error> {
  const { statusCode = 0, headers } = response;
  if (statusCode < 400) {
    response.destroy();
    return new BadAnswer(`status ${statusCode} instead of 101`);
  }
  return errorFromWorker(worker.worker_id, { statusCode, headers, body: response });
}
