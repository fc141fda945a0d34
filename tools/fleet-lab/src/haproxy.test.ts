import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { createHttpServer, createLogger } from '@svc/service-kit';
import { freePort } from '@svc/service-kit/testing';
import { createSelfSigned } from '@svc/service-kit/tls';
import { expect, onTestFinished, test } from 'vitest';
import { HaProxy } from './haproxy.ts';

const BALANCER = '127.0.0.1';
const CLIENT = '127.0.0.9';

/** A server at a free port, which tells a client its address at `/ip`. */
async function startServer(proxyProtocol: readonly string[]): Promise<number> {
  const tls = await createSelfSigned({ commonName: 'x', names: [BALANCER], days: 2 });
  const logger = createLogger({ level: 'silent' });
  const app = createHttpServer({ logger, tls, proxyProtocol });
  app.get('/readyz', async () => ({}));
  app.get('/ip', async ({ ip }) => ({ ip }));
  await app.listen({ host: BALANCER, port: 0 });
  onTestFinished(() => app.close());
  return (app.server.address() as AddressInfo).port;
}

test('a component knows the addresses of clients behind a load balancer, and passes its checks', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-haproxy-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const server = `${BALANCER}:${await startServer([BALANCER])}`;
  const port = await freePort();
  const frontends = [
    {
      bind: `${BALANCER}:${port}`,
      servers: [server],
      hasComponents: true,
      sendsProxyHeaders: true,
    },
  ];
  await using proxy = await HaProxy.start({ name: 'test', directory, launcher: [], frontends });
  await proxy.untilUsed(BALANCER);
  const options = { localAddress: CLIENT, rejectUnauthorized: false, agent: false };
  const [response] = await once(get(`https://${BALANCER}:${port}/ip`, options), 'response');
  expect(await json(response)).toEqual({ ip: CLIENT });
});
