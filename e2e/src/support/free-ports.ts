import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the range that the kernel gives to outgoing connections, so that none of them takes a port meanwhile. */
const FIRST = 20_000;
const LAST = 31_999;

/** Different ports of localhost that are free now. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let tries = 0; ports.size < count; tries += 1) {
    if (tries > 200) throw new Error('no free ports');
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1));
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host: 'localhost', port });
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
