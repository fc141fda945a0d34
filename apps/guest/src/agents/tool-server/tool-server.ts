import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { AgentTool } from '../tools/tool.ts';
import { errorResponse, McpTools, PARSE_ERROR, type Response } from './mcp.ts';

const HOST = '127.0.0.1';
const PATH = '/mcp';
/** The header with the id of a session. */
const SESSION = 'mcp-session-id';
const MAX_CONNECTIONS = 64;
/** Above the longest text that a tool accepts, in its longest encoding. */
const MAX_BYTES = 1024 * 1024;

/**
 * Offers tools by MCP over HTTP ("Streamable HTTP"), for the vendors' CLIs: on the loopback address, to clients that know
 * the token. Every answer is a stream that begins at once, since the CLIs do not wait long for its beginning.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
 */
export class ToolServer {
  readonly url: string;
  /** The bearer token of its clients. */
  readonly token: string;
  readonly #mcp: McpTools;
  readonly #authorization: Buffer;
  readonly #ending: AbortController;

  private constructor(tools: readonly AgentTool[], server: Server, ending: AbortController) {
    this.url = `http://${HOST}:${(server.address() as AddressInfo).port}${PATH}`;
    this.token = randomBytes(32).toString('base64url');
    this.#authorization = Buffer.from(`Bearer ${this.token}`);
    this.#ending = ending;
    this.#mcp = new McpTools(tools);
    server.on('request', (request, response) => {
      // A connection that breaks ends its request.
      this.#handle(request, response).catch(() => response.destroy());
    });
    ending.signal.addEventListener('abort', () => {
      server.close();
      server.closeAllConnections();
    });
  }

  /** Starts a server, which ends together with its tools: when `ending` aborts. Rejects when it cannot listen. */
  static async start(tools: readonly AgentTool[], ending: AbortController): Promise<ToolServer> {
    const server = createServer();
    server.maxConnections = MAX_CONNECTIONS;
    server.listen(0, HOST);
    await once(server, 'listening', { signal: ending.signal });
    return new ToolServer(tools, server, ending);
  }

  /** Ends calls when `signal` aborts, see {@link McpTools.duringTask}. */
  duringTask(signal: AbortSignal): void {
    this.#mcp.duringTask(signal);
  }

  /** Ends all calls and connections. */
  close(): void {
    this.#ending.abort();
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A client must not send a request over a connection that ends at the same moment.
    response.setHeader('connection', 'close');
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) {
      response.writeHead(refusal, refusal === 405 ? { allow: 'POST' } : {}).end();
      return;
    }
    const message = parse(await text(request));
    if (message === undefined) {
      reject(response, errorResponse(PARSE_ERROR, 'The message is not a JSON object.'));
    } else if ('id' in message) {
      await this.#answer(request, message, response);
    } else {
      const client = clientOf(request);
      const error = await this.#mcp.handle(client ?? '', message, this.#ending.signal);
      if (error === undefined) response.writeHead(202).end();
      else reject(response, error);
    }
  }

  /** The status with which a request is refused before its body is read. */
  #refusalOf({ url, method, headers }: IncomingMessage): number | undefined {
    // Pages in the sandbox's browser send it, and no CLI does.
    if (headers.origin !== undefined) return 403;
    if (!this.#isAuthorized(headers.authorization)) return 401;
    if (url !== PATH) return 404;
    if (method !== 'POST') return 405;
    if (!headers['content-type']?.startsWith('application/json')) return 415;
    return Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) > MAX_BYTES
      ? 413
      : undefined;
  }

  #isAuthorized(authorization = ''): boolean {
    const given = Buffer.from(authorization);
    const known = this.#authorization;
    return given.length === known.length && timingSafeEqual(given, known);
  }

  /** Streams the answer to a request. */
  async #answer(
    request: IncomingMessage,
    message: object,
    response: ServerResponse,
  ): Promise<void> {
    const client = clientOf(request);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    if (client === undefined) response.setHeader(SESSION, randomUUID());
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    response.flushHeaders();
    const signal = AbortSignal.any([gone.signal, this.#ending.signal]);
    const answer = await this.#mcp.handle(client ?? '', message, signal);
    response.end(answer === undefined ? '' : `event: message\ndata: ${JSON.stringify(answer)}\n\n`);
  }
}

/** The id that tells the calls of one client from those of others. The server keeps nothing else of a session. */
function clientOf({ headers }: IncomingMessage): string | undefined {
  const id = headers[SESSION];
  return typeof id === 'string' ? id : undefined;
}

function reject(response: ServerResponse, error: Response): void {
  response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error));
}

function parse(body: string): object | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
