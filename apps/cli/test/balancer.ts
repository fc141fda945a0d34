import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { pipeline } from 'node:stream';

const CHECK_MS = 2_000;

/** A TCP load balancer: each new connection goes to the first backend whose `/readyz` answers 200. */
export class Balancer implements AsyncDisposable {
  /** The `http:` URLs of the backends, in order of preference. */
  readonly backends: string[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((client) => {
      this.#sockets.add(client.once('close', () => this.#sockets.delete(client)));
      client.on('error', () => client.destroy());
      void this.#forward(client);
    });
  }

  static async start(): Promise<Balancer> {
    const balancer = new Balancer();
    balancer.#server.listen({ host: '127.0.0.1', port: 0 });
    await once(balancer.#server, 'listening');
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The first backend that is ready; undefined when none is. */
  async ready(): Promise<string | undefined> {
    for (const url of this.backends) {
      const answer = await fetch(`${url}/readyz`, {
        headers: { connection: 'close' },
        signal: AbortSignal.timeout(CHECK_MS),
      }).catch(() => undefined);
      await answer?.body?.cancel();
      if (answer?.status === 200) return url;
    }
    return undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#server, 'close');
  }

  async #forward(client: Socket): Promise<void> {
    const url = await this.ready();
    if (url === undefined || client.destroyed) {
      client.resetAndDestroy();
      return;
    }
    const { hostname, port } = new URL(url);
    const backend = dial({ host: hostname, port: Number(port) });
    // Either end of a connection may reset it; the other end then sees it close.
    pipeline(client, backend, () => backend.destroy());
    pipeline(backend, client, () => client.destroy());
  }
}
