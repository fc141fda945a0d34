import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy that refuses and records every request. */
export interface ForwardProxy extends AsyncDisposable {
  /** Hosts and URLs that programs requested. */
  readonly refused: string[];
  /** Variables that send all connections of a program here, except those in its own NO_PROXY. */
  readonly env: Record<string, string>;
}

export async function startForwardProxy(): Promise<ForwardProxy> {
  const refused: string[] = [];
  const server = createServer((request, response) => {
    refused.push(request.url ?? '');
    response.writeHead(502).end();
  });
  server.on('connect', (request, socket) => {
    refused.push(request.url ?? '');
    socket.on('error', () => socket.destroy());
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
  return {
    refused,
    env: Object.fromEntries(
      names.flatMap((name) => [
        [name, url],
        [name.toLowerCase(), url],
      ]),
    ),
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
