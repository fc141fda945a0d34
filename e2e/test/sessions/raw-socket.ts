import { once } from 'node:events';
import type { SessionAccess } from '@svc/contract';
import { until } from '@svc/service-driver';
import WebSocket from 'ws';
import type { Access } from '../access.ts';

const OPEN_MS = 60_000;

/** The answer to a refused upgrade. */
export interface UpgradeAnswer {
  readonly status: number;
  readonly body: string;
}

/** A WebSocket that can send anything that a hostile client might. */
export class RawSocket implements AsyncDisposable {
  readonly frames: Record<string, unknown>[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data) => this.frames.push(JSON.parse(String(data))));
    this.closed = once(socket, 'close').then(([code, reason]) => ({
      code,
      reason: String(reason),
    }));
  }

  /** Attaches to a session with its token in the header. */
  static async open(access: Access, session: SessionAccess): Promise<RawSocket> {
    const socket = new WebSocket(session.connect_url, {
      ca: access.ca,
      headers: { authorization: `Bearer ${session.jwt}` },
    });
    const raw = new RawSocket(socket);
    await once(socket, 'open', { signal: AbortSignal.timeout(OPEN_MS) });
    return raw;
  }

  send(data: string | Buffer, options: { readonly binary: boolean } = { binary: false }): void {
    this.#socket.send(data, options);
  }

  /** Stops reading from the socket. */
  stopReading(): void {
    this.#socket.pause();
  }

  /** Sends a frame and resolves when it has been written to the connection. */
  async sent(data: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#socket.send(data, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Waits for a frame with these fields and returns the first one. */
  async until(fields: Record<string, unknown>): Promise<Record<string, unknown>> {
    const fits = (frame: Record<string, unknown>) =>
      Object.entries(fields).every(([name, value]) => frame[name] === value);
    return until(`the frame ${JSON.stringify(fields)} arrives`, async () => this.frames.find(fits));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.terminate();
    await this.closed;
  }
}

/** Requests an upgrade that the service should refuse, and returns the answer. @throws Error when it is accepted */
export async function refusedUpgrade(
  access: Access,
  url: string,
  headers: Record<string, string>,
): Promise<UpgradeAnswer> {
  const socket = new WebSocket(url, { ca: access.ca, headers });
  const answer = Promise.withResolvers<UpgradeAnswer>();
  socket.on('unexpected-response', (_request, response) => {
    let body = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      body += chunk;
    });
    response.on('end', () => {
      answer.resolve({ status: response.statusCode ?? 0, body });
      socket.terminate();
    });
  });
  socket.on('open', () => answer.reject(new Error('the upgrade was accepted')));
  socket.on('error', (error) => answer.reject(error));
  return answer.promise;
}
