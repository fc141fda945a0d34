import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** Starts a server on the loopback address, which ends with the test. Without a listener, the test takes its `request` events. */
export async function startHttpServer(
  listener?: RequestListener,
): Promise<{ readonly server: Server; readonly host: string; readonly port: number }> {
  const server = createServer(listener);
  const host = '127.0.0.1';
  server.listen(0, host);
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, host, port: (server.address() as AddressInfo).port };
}
