import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the kernel's range for outgoing connections, so that none of them can take a port in between. */
const FIRST = 20_000;
const LAST = 31_999;

/** Distinct free ports. @throws Error when hardly any port is free */
export async function freePorts(count: number, host = 'localhost'): Promise<number[]> {
  const ports = new Set<number>();
  for (let tries = 0; ports.size < count; tries += 1) {
    if (tries > 200) throw new Error('no free ports');
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    if (await isFree(port, host)) ports.add(port);
  }
  return [...ports];
}

/** A free port. @throws Error when hardly any port is free */
export async function freePort(host?: string): Promise<number> {
  const [port] = await freePorts(1, host);
  return port as number;
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
