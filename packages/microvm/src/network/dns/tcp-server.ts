import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { KeyedSlots, type Sharing } from '@svc/service-kit/concurrency';
import { FrameReader, frame } from './tcp-frames.ts';
import type { Answerer } from './udp-server.ts';

const IDLE_MS = 10_000;
const MAX_QUERY_BYTES = 1024;
/** Of each client. */
const CONNECTIONS = 8;
const TOGETHER: Sharing = { own: 2, shared: 256 };

/**
 * Serves DNS over TCP, one query at a time on each connection. Rejects when the address cannot be bound. Aborting
 * `closing` closes the open connections. The caller closes the server.
 */
export async function serveTcp(
  address: string,
  port: number,
  answer: Answerer,
  closing: AbortSignal,
): Promise<Server> {
  const open = new KeyedSlots(CONNECTIONS, TOGETHER);
  const server = createServer((socket) => {
    const from = socket.remoteAddress ?? '';
    // There is no way to report an error to the client of a broken connection.
    socket.on('error', () => undefined);
    const leave = open.take(from);
    if (leave === undefined) {
      socket.destroy();
      return;
    }
    addAbortSignal(closing, socket);
    socket.once('close', leave);
    serveConnection(socket, (message) => answer(message, from));
  });
  server.listen({ port, host: address, exclusive: true });
  await once(server, 'listening');
  return server;
}

function serveConnection(
  socket: Socket,
  answer: (message: Buffer) => Promise<Buffer | undefined>,
): void {
  const reader = new FrameReader(MAX_QUERY_BYTES);
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  const serve = async (chunk: Buffer) => {
    for (const message of reader.read(chunk)) {
      const reply = await answer(message);
      if (reply === undefined || !socket.writable) {
        socket.destroy();
        return;
      }
      socket.write(frame(reply));
    }
    if (reader.broken) socket.destroy();
    else socket.resume();
  };
  socket.on('data', (chunk) => {
    // Stops reading until all received queries are answered, so that a fast client cannot fill the memory.
    socket.pause();
    // A fault costs the client that caused it its connection, and nobody else anything.
    serve(chunk).catch(() => socket.destroy());
  });
}
