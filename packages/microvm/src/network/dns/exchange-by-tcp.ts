import { connect } from 'node:net';
import { FrameReader, frame } from './tcp-frames.ts';
import type { UpstreamServer } from './upstream-servers.ts';

const MAX_ANSWER_BYTES = 16 * 1024;

/** Sends a query over a new connection and returns the first message that `isAnswer` accepts. */
export async function exchangeByTcp(
  server: UpstreamServer,
  query: Buffer,
  isAnswer: (message: Buffer) => boolean,
  signal: AbortSignal,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const socket = connect({ host: server.address, port: server.port, signal });
  const reader = new FrameReader(MAX_ANSWER_BYTES);
  socket.on('error', reject);
  socket.on('close', () => reject(new Error('the DNS server closed the connection')));
  socket.on('data', (chunk) => {
    for (const message of reader.read(chunk)) {
      if (isAnswer(message)) resolve(message);
    }
    if (reader.broken) reject(new Error('the DNS server sent a message that is too long'));
  });
  socket.end(frame(query));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}
