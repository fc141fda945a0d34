import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { answerOf, tokensIn } from './answer.ts';
import { dialectAt } from './dialects/index.ts';
import { openaiFailure } from './dialects/openai-failure.ts';
import { parseBody, readBody } from './read-body.ts';
import { type RecordedRequest, RequestLog } from './requests.ts';
import { Rules } from './rules.ts';
import { parseScript, type Script } from './script.ts';
import { sendAnswer, sendJson } from './send-answer.ts';

export interface ModelServerOptions {
  readonly script: Script;
  /** Certificate and key in PEM format. Default: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: a free port. */
  readonly port?: number;
}

/** A running model server. */
export interface ModelServer extends AsyncDisposable {
  /** The server's origin, without a path. */
  readonly url: string;
  /** The latest 1,000 requests, oldest first. */
  readonly requests: readonly RecordedRequest[];
  /** Replaces the script and resets its counts. @throws Error when it is invalid */
  setScript(script: Script): void;
  /** Stops the server and closes all connections, including hanging ones. */
  close(): Promise<void>;
}

/** Starts a server that answers like the vendors' models, from a script. Rejects when it cannot listen. */
export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const { tls, host = '127.0.0.1', port = 0 } = options;
  const handler = new Handler(options.script);
  const listener = (request: IncomingMessage, response: ServerResponse) =>
    void handler.handle(request, response);
  const server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
  server.listen(port, host);
  await once(server, 'listening');
  const { port: bound } = server.address() as AddressInfo;
  const name = host.includes(':') ? `[${host}]` : host;
  const close = async () => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${name}:${bound}`,
    requests: handler.log.list,
    setScript: (script) => handler.setScript(script),
    close,
    [Symbol.asyncDispose]: close,
  };
}

class Handler {
  readonly log = new RequestLog();
  #rules: Rules;
  #answers = 0;

  constructor(script: Script) {
    this.#rules = new Rules(parseScript(script));
  }

  setScript(script: Script): void {
    this.#rules = new Rules(parseScript(script));
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const disconnected = new AbortController();
    response.once('close', () => disconnected.abort());
    try {
      await this.#answer(request, response, disconnected.signal);
    } catch (error) {
      // After a disconnect the error is expected. Any other error is a defect of this server.
      if (disconnected.signal.aborted) return;
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, openaiFailure(500, String(error)));
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = request;
    const url = new URL(path, 'http://model');
    if (method === 'GET' && url.pathname === '/__requests') {
      return sendJson(response, 200, this.log.list);
    }
    const bytes = await readBody(request);
    if (bytes === undefined) {
      response.setHeader('connection', 'close');
      return sendJson(response, 413, openaiFailure(413, 'The request is too large.'));
    }
    const body = parseBody(bytes);
    const dialect = method === 'POST' ? dialectAt(url.pathname) : undefined;
    this.log.add({ dialect: dialect?.name, method, path, headers, body }, bytes.length);
    if (dialect === undefined) return this.#answerOther(method, url, bytes.length, response);
    if (typeof body !== 'object' || body === null) {
      return sendJson(response, 400, dialect.failure(400, 'The body is not a JSON object.'));
    }
    const conversation = dialect.read(body, url);
    const reply = this.#rules.replyTo(conversation, path);
    this.#answers += 1;
    const id = String(this.#answers).padStart(6, '0');
    response.setHeader(dialect.name === 'anthropic' ? 'request-id' : 'x-request-id', `req_${id}`);
    const answer = answerOf(reply, conversation, id, bytes.length);
    const { stream } = conversation;
    await sendAnswer(response, { dialect, reply, answer, body, url, stream }, signal);
  }

  /** Answers the other requests that vendors' clients send. */
  #answerOther(method: string, { pathname }: URL, bytes: number, response: ServerResponse): void {
    if (method === 'HEAD') response.writeHead(200).end();
    else if (method === 'POST' && pathname.endsWith('/messages/count_tokens')) {
      sendJson(response, 200, { input_tokens: tokensIn(bytes) });
    } else if (method === 'GET' && pathname.endsWith('/models')) {
      sendJson(response, 200, { object: 'list', data: [], models: [], has_more: false });
    } else {
      sendJson(response, 404, openaiFailure(404, `No route for ${method} ${pathname}.`));
    }
  }
}
