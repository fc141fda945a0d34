import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';

/** Answers one message, or leaves it unanswered. A server leaves it unanswered too when this rejects. */
export type Answerer = (message: Buffer, from: string) => Promise<Buffer | undefined>;

/**
 * Serves DNS over UDP. Rejects when the address cannot be bound. Aborting `closing` stops the answers. The caller then
 * closes the socket.
 */
export async function serveUdp(
  address: string,
  port: number,
  answer: Answerer,
  closing: AbortSignal,
): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    const send = (reply: Buffer | undefined) => {
      if (reply !== undefined && !closing.aborted)
        socket.send(reply, from.port, from.address, () => undefined);
    };
    // Failing to send a reply is equivalent to losing it in transit. Sending throws when the guest sent from port 0.
    answer(message, from.address)
      .then(send)
      .catch(() => undefined);
  });
  socket.bind({ port, address, exclusive: true });
  await once(socket, 'listening');
  return socket;
}
