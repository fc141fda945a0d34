import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import type { ConnectionTracker } from './graceful-close.ts';

/** A larger body is written in slices of this size. */
const SLICE_BYTES = 65_536;

/**
 * Cuts connections off whose client has not read any part of a waiting response for `ms` milliseconds. One that reads
 * slowly, or waits for a response, is left alone. A keep-alive connection without a request ends at its own timeout.
 */
export function cutUnreadResponses(
  server: Server,
  connections: Pick<ConnectionTracker, 'isBusy'>,
  ms: number,
): void {
  // A write that has ended counts as activity, so this comes after as long without any.
  server.setTimeout(ms, (socket: Socket) => {
    if (socket.writableLength > 0 || !connections.isBusy(socket)) socket.destroy();
    else socket.setTimeout(ms);
  });
}

/** Writes large bodies in slices. Over TLS, only the end of a write shows that the client reads. */
export function sendInSlices(app: Pick<FastifyInstance, 'addHook'>): void {
  app.addHook<unknown>('onSend', (_request, reply, payload, done) => {
    const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (!isWhole || payload.length <= SLICE_BYTES) {
      done(null, payload);
      return;
    }
    const body = typeof payload === 'string' ? Buffer.from(payload) : payload;
    reply.header('content-length', body.length);
    done(null, Readable.from(slicesOf(body), { objectMode: false }));
  });
}

function* slicesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += SLICE_BYTES) yield body.subarray(at, at + SLICE_BYTES);
}
