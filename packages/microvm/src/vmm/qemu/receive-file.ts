import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { pipeline } from 'node:stream/promises';

export interface Receiver {
  /** Settles when the first connection has ended and the file is written. */
  readonly received: Promise<void>;
  close(): void;
}

/** Writes the data of the first connection to a socket into a file. Every user that can reach the socket may connect. */
export async function receiveFile(socketPath: string, filePath: string): Promise<Receiver> {
  const server = createServer();
  const received = once(server, 'connection').then(async ([connection]) => {
    server.close();
    await pipeline(connection, createWriteStream(filePath));
  });
  // The caller may fail before it awaits this. Then its failure must not be an unhandled rejection.
  received.catch(() => undefined);
  server.listen(socketPath);
  await once(server, 'listening');
  await chmod(socketPath, 0o666);
  return { received, close: () => void server.close() };
}
