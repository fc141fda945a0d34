import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';
import type { UpstreamServer } from './upstream-servers.ts';

/** Sends a query from a new port and returns the first message from this server that `isAnswer` accepts. */
export async function exchangeByUdp(
  server: UpstreamServer,
  query: Buffer,
  isAnswer: (message: Buffer) => boolean,
  signal: AbortSignal,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const socket = createSocket(isIPv6(server.address) ? 'udp6' : 'udp4');
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  socket.on('error', reject);
  socket.on('message', (message) => {
    if (isAnswer(message)) resolve(message);
  });
  // Connected, so that the kernel drops datagrams from other senders.
  socket.connect(server.port, server.address, (error?: Error) => {
    if (error) reject(error);
    else if (!signal.aborted) socket.send(query);
  });
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    socket.close();
  }
}
