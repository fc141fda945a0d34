import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { ControlPlaneClient } from './control-plane-client.ts';
import { ControlPlaneTransport } from './control-plane-transport.ts';

test('calls for sandboxes that take every connection leave the reports of a worker theirs', async () => {
  let hanging = 0;
  const server = createServer((request, response) => {
    request.resume();
    if (request.url?.endsWith('/events')) response.writeHead(204).end();
    else hanging += 1;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const transport = new ControlPlaneTransport({
    url: `http://127.0.0.1:${port}`,
    ca: undefined,
    mint: async () => 'token',
  });
  const ending = new AbortController();
  const calls = Array.from({ length: 40 }, () =>
    transport.done({
      method: 'PUT',
      path: '/turns',
      json: {},
      signal: ending.signal,
      deadlineMs: 300_000,
    }),
  );
  const ends = Promise.allSettled(calls);
  await expect.poll(() => hanging).toBe(16);
  const client = new ControlPlaneClient(transport, 'w1');
  await client.sendEvents([], ending.signal);
  expect(hanging).toBe(16);
  ending.abort();
  await ends;
  await transport.close();
  server.closeAllConnections();
  server.close();
}, 60_000);
