import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { pipeline } from 'node:stream/promises';

export interface Receiver {
  /** Settles when the one connection that is taken has ended and the file is written. */
  readonly received: Promise<void>;
  close(): void;
}

/** Listens on a socket that any user of the machine who can reach it may use, for one connection. */
export async function receiveInto(socketPath: string, filePath: string): Promise<Receiver> {
  const server = createServer();
  const received = once(server, 'connection').then(async ([connection]) => {
    server.close();
    await pipeline(connection, createWriteStream(filePath));
  });
  // Whoever waits for it learns of the failure; if nobody comes so far, nobody needs to.
  received.catch(() => undefined);
  server.listen(socketPath);
  await once(server, 'listening');
  await chmod(socketPath, 0o666);
  return { received, close: () => void server.close() };
}
