import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as sendRequest,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** What happens to requests: their connections are closed, they are answered 500, or they wait until there is no fault. */
export type Fault = 'closed' | 'broken' | 'slow';

/** An HTTP proxy in front of a server, for tests of what its clients do when it fails. */
export class FaultyProxy implements AsyncDisposable {
  /** URL of the proxy, which replaces that of the server. */
  readonly url: string;
  readonly #target: URL;
  readonly #server: Server;
  #fault: Fault | undefined;
  #waiting: (() => void)[] = [];
  #failed = 0;

  private constructor(target: URL, server: Server) {
    this.#target = target;
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(target: string): Promise<FaultyProxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new FaultyProxy(new URL(target), server);
    server.on('request', (request, response) => proxy.#serve(request, response));
    return proxy;
  }

  /** The requests that met a fault, those that wait included. */
  get failed(): number {
    return this.#failed;
  }

  /** Fails all requests from now on. */
  fail(fault: Fault): void {
    this.#fault = fault;
  }

  /** Passes on all requests from now on, and those that wait. */
  recover(): void {
    this.#fault = undefined;
    for (const resume of this.#waiting.splice(0)) resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const fault = this.#fault;
    if (fault === undefined) {
      this.#forward(request, response);
      return;
    }
    this.#failed += 1;
    if (fault === 'slow') this.#waiting.push(() => this.#forward(request, response));
    else if (fault === 'closed') request.socket.destroy();
    else {
      request.resume();
      response.writeHead(500).end();
    }
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const { hostname, port } = this.#target;
    // The headers stay as they are, because clients sign the name of the host.
    const { method, url: path, headers } = request;
    const forwarded = sendRequest({ hostname, port, method, path, headers });
    const give = (error: unknown) => response.destroy(error instanceof Error ? error : undefined);
    forwarded.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      pipeline(answer, response).catch(give);
    });
    forwarded.once('error', give);
    pipeline(request, forwarded).catch(give);
  }
}
