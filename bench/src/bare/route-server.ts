import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { databaseUrl } from '../service/database.ts';
import type { BareRouteOptions } from './bare-route.ts';

const PROGRAM = fileURLToPath(new URL('bare-route.ts', import.meta.url));
const START_MS = 30_000;

/** A process that serves the bare route, on the service's database and with the service's certificate. */
export interface RouteServer {
  readonly baseUrl: string;
  close(): Promise<void>;
}

export async function startBareRoute(dataDir: string): Promise<RouteServer> {
  const options: BareRouteOptions = {
    databaseUrl: await databaseUrl(dataDir),
    certificateFile: join(dataDir, 'tls/server.pem'),
    keyFile: join(dataDir, 'tls/server-key.pem'),
  };
  const child = fork(PROGRAM, [JSON.stringify(options)]);
  const [port] = await once(child, 'message', { signal: AbortSignal.timeout(START_MS) });
  return {
    baseUrl: `https://localhost:${port}`,
    close: async () => {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}
