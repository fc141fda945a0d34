import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { databaseServer } from '@svc/service-driver';

const START_MS = 30_000;

/** The only argument of a forked server, as JSON. */
export interface ForkedServerOptions {
  readonly databaseUrl: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** A server in a process of its own. */
export interface ForkedServer {
  readonly baseUrl: string;
  close(): Promise<void>;
}

/** Starts a server with the database and the certificate of a service. */
export async function forkServer(program: string, dataDir: string): Promise<ForkedServer> {
  const database = await databaseServer(dataDir);
  if (database === undefined) throw new Error(`no database runs in ${dataDir}`);
  const options: ForkedServerOptions = {
    databaseUrl: database.url,
    certificateFile: join(dataDir, 'tls/server.pem'),
    keyFile: join(dataDir, 'tls/server-key.pem'),
  };
  const { port, close } = await forkProgram(program, options);
  return { baseUrl: `https://localhost:${port}`, close };
}

/** Starts a program that gets its options as JSON, sends its port when it listens, and ends when it is disconnected. */
export async function forkProgram(
  program: string,
  options: object,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const child = fork(program, [JSON.stringify(options)]);
  const [port] = await once(child, 'message', { signal: AbortSignal.timeout(START_MS) });
  return {
    port: port as number,
    close: async () => {
      // Ctrl-C in a terminal ends it, too.
      if (!child.connected) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
