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
 * Serves DNS over TCP, one query at a time on each connection. A query that is left unanswered ends its connection, and so
 * does `idleMs` (milliseconds) without a whole query whose predecessors' answers were taken. Rejects when the address
 * cannot be bound. Aborting `closing` closes the open connections. The caller closes the server.
 */
export async function serveTcp(
  address: string,
  port: number,
  answer: Answerer,
  closing: AbortSignal,
  idleMs = IDLE_MS,
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
    serveConnection(socket, (message) => answer(message, from), idleMs);
  });
  server.listen({ port, host: address, exclusive: true });
  await once(server, 'listening');
  return server;
}

function serveConnection(
  socket: Socket,
  answer: (message: Buffer) => Promise<Buffer | undefined>,
  idleMs: number,
): void {
  const reader = new FrameReader(MAX_QUERY_BYTES);
  const idle = setTimeout(() => socket.destroy(), idleMs);
  socket.once('close', () => clearTimeout(idle));
  const serve = async (chunk: Buffer) => {
    for (const message of reader.read(chunk)) {
      // Not on arriving bytes: a client could send them one by one, or forever without taking an answer.
      idle.refresh();
      const reply = await answer(message);
      if (reply === undefined) {
        socket.destroy();
        return;
      }
      await send(socket, frame(reply));
    }
    if (reader.broken) socket.destroy();
    else socket.resume();
  };
  socket.on('data', (chunk) => {
    // Stops reading until all received queries are answered, so that a client that sends fast or does not read cannot fill
    // the memory.
    socket.pause();
    // A fault costs the client that caused it its connection, and nobody else anything.
    serve(chunk).catch(() => socket.destroy());
  });
}

/** Settles when the kernel has taken the bytes. Rejects when the connection is closed. */
function send(socket: Socket, bytes: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.write(bytes, (error) => (error ? reject(error) : resolve()));
  return promise;
}
