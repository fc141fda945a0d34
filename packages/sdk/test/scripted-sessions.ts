import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { type WebSocket, WebSocketServer } from 'ws';

/** A connection that the server accepted. */
export interface SeenConnection {
  readonly url: URL;
  readonly authorization: string | undefined;
  readonly protocol: string;
  readonly socket: WebSocket;
  /** The received frames, parsed. */
  readonly received: unknown[];
}

/** The handling of one connection: a script for its socket, or a status with which it is refused. */
export type Meeting = ((socket: WebSocket, url: URL) => void) | number;

/** A WebSocket server for tests that handles connections by the scripts in turn and repeats the last one. */
export async function scriptedSessions(...meetings: readonly Meeting[]) {
  const seen: SeenConnection[] = [];
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true });
  let count = 0;
  server.on('upgrade', (request: IncomingMessage, stream, head) => {
    stream.on('error', () => undefined);
    const meeting = meetings[Math.min(count, meetings.length - 1)];
    count += 1;
    if (typeof meeting !== 'function') {
      const body = JSON.stringify({
        code: 'refused_by_script',
        detail: 'No.',
        request_id: 'req-1',
      });
      stream.end(
        `HTTP/1.1 ${meeting} No\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      const url = new URL(request.url ?? '', 'http://runtime');
      const { authorization } = request.headers;
      const received: unknown[] = [];
      socket.on('error', () => undefined);
      socket.on('message', (data) => received.push(JSON.parse(data.toString())));
      seen.push({ url, authorization, protocol: socket.protocol, socket, received });
      meeting(socket, url);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    /** The number of requested upgrades, including refused ones. */
    count: () => count,
    /** The number of open connections, upgraded or not. */
    connections: () => promisify(server.getConnections.bind(server))(),
    access: {
      chat_session_id: 'session-1',
      jwt: 'token-1',
      connect_url: `ws://127.0.0.1:${port}/v1/sessions/session-1/ws`,
    },
    close: async () => {
      for (const { socket } of seen) socket.terminate();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A `ready` frame, with the newest stored number and more fields, if they are given. */
export function ready(lastSeq?: number, fields: object = {}): string {
  const more = lastSeq === undefined ? fields : { last_seq: lastSeq, ...fields };
  return JSON.stringify({ type: 'ready', agent: 'deictic', model: 'm', resumed: false, ...more });
}

/** A numbered frame. `previousSeq`: the number of the frame before it, where the numbers jump. */
export function numbered(seq: number, previousSeq?: number): string {
  const numbers = { previous_seq: previousSeq, seq };
  return JSON.stringify({ type: 'text_delta', data: `#${seq}`, ...numbers, ts: 'now' });
}
