import { randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { CliError } from '../output/errors.ts';

const HOST = '127.0.0.1';
const PAGE = new URL('./page/', import.meta.url);
/** The file of each path, and its media type. */
const FILES = new Map<string | undefined, readonly [file: string, mediaType: string]>([
  ['/', ['index.html', 'text/html; charset=utf-8']],
  ['/page.css', ['page.css', 'text/css; charset=utf-8']],
  ['/page.js', ['page.js', 'text/javascript; charset=utf-8']],
  ['/display.js', ['display.js', 'text/javascript; charset=utf-8']],
  ['/input.js', ['input.js', 'text/javascript; charset=utf-8']],
]);
const SOCKET_PATH = '/view';
const TOKEN_BYTES = 24;
/** A page sends only small messages: what was drawn, and what mouse and keyboard do. */
const MAX_MESSAGE_BYTES = 64 * 1024;
const MAX_CONNECTIONS = 32;
const CLOSE_MS = 1_000;

export interface PageServerOptions {
  /** 0: any that is free. */
  readonly port: number;
  /** Receives the WebSocket of each page that opens the link, and the token with which this page can come back. */
  readonly onPage: (socket: WebSocket, nextToken: string) => void;
}

/**
 * Serves a page to the browser of this machine, on the loopback address. Whoever has the link can open the page's
 * WebSocket, once: each link ends with its first use. Other web pages can neither read the page nor open the WebSocket,
 * not even under a name of their own for this address.
 */
export class PageServer {
  readonly #options: PageServerOptions;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    clientTracking: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  #token = newToken();
  /** Host and port. */
  #authority = '';

  private constructor(options: PageServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on('upgrade', (request, stream, head) => this.#upgrade(request, stream, head));
  }

  /** @throws CliError when the port cannot be bound */
  static async listen(options: PageServerOptions): Promise<PageServer> {
    const server = new PageServer(options);
    server.#server.listen(options.port, HOST);
    try {
      await once(server.#server, 'listening');
    } catch (cause) {
      throw new CliError('port_not_available', `${HOST}:${options.port} cannot be used`, {
        next: 'name another port with --port, or leave the option away',
        cause,
      });
    }
    server.#authority = `${HOST}:${(server.#server.address() as AddressInfo).port}`;
    return server;
  }

  /** The link that opens the page. Its last part is not sent in requests for the page. */
  get link(): string {
    return `${this.#origin}/#${this.#token}`;
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets.clients) socket.close(1001, 'the command has ended');
    const timer = setTimeout(() => {
      for (const socket of this.#sockets.clients) socket.terminate();
      this.#server.closeAllConnections();
    }, CLOSE_MS);
    this.#server.closeIdleConnections();
    await closed;
    clearTimeout(timer);
  }

  get #origin(): string {
    return `http://${this.#authority}`;
  }

  async #serve({ method, url, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeaders(new Map(Object.entries(this.#securityHeaders())));
    const [file, mediaType] = FILES.get(url) ?? [];
    // Under another name, the page would belong to the origin of whoever controls that name.
    if (headers.host !== this.#authority) response.writeHead(403).end(`Open ${this.#origin}`);
    else if (method !== 'GET') response.writeHead(405, { allow: 'GET' }).end();
    else if (file === undefined) response.writeHead(404).end();
    else {
      const content = await readFile(new URL(file, PAGE));
      response.writeHead(200, { 'content-type': mediaType }).end(content);
    }
  }

  #securityHeaders(): Readonly<Record<string, string>> {
    const socket = `ws://${this.#authority}`;
    return {
      'cache-control': 'no-store',
      'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; connect-src ${socket}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    };
  }

  #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    stream.on('error', () => stream.destroy());
    const { host, origin } = request.headers;
    const [path, query] = (request.url ?? '').split('?', 2);
    const isOwnPage = host === this.#authority && origin === this.#origin;
    const token = new URLSearchParams(query).get('token');
    if (!isOwnPage || path !== SOCKET_PATH || !this.#takeToken(token)) {
      stream.end('HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    this.#sockets.handleUpgrade(request, stream, head, (socket) => {
      this.#options.onPage(socket, this.#token);
    });
  }

  /** Whether this is the token of the link. The link has another one afterwards. */
  #takeToken(token: string | null): boolean {
    const [given, wanted] = [Buffer.from(token ?? ''), Buffer.from(this.#token)];
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return false;
    this.#token = newToken();
    return true;
  }
}

function newToken(): string {
  return randomBytes(TOKEN_BYTES).toString('base64url');
}
