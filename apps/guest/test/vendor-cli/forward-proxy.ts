import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A proxy that lets nothing through, and keeps what was asked of it. */
export interface ForwardProxy extends AsyncDisposable {
  /** Hosts and URLs that a program behind it wanted to reach. */
  readonly wanted: string[];
  /** Sends every connection of a program to it, but those that the program excepts. */
  readonly env: Record<string, string>;
}

export async function startForwardProxy(): Promise<ForwardProxy> {
  const wanted: string[] = [];
  const server = createServer((request, response) => {
    wanted.push(request.url ?? '');
    response.writeHead(502).end();
  });
  server.on('connect', (request, socket) => {
    wanted.push(request.url ?? '');
    socket.on('error', () => socket.destroy());
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'];
  return {
    wanted,
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
