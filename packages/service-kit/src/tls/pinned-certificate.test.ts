import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server } from 'node:tls';
import { afterEach, expect, it } from 'vitest';
import { createCa, createSelfSigned, issueCertificate } from './certificate.ts';
import { pinCertificate } from './pinned-certificate.ts';

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const makeWorker = () =>
  createSelfSigned({ commonName: 'worker-1', names: ['worker-1.internal'], days: 30 });

/** Serves `presented` and connects a client that pins `pinned`. Rejects when the client does not trust it. */
async function connectPinned(
  presented: { readonly cert: string; readonly key: string },
  pinned: string,
): Promise<void> {
  const server = createServer(presented, (socket) => socket.on('error', () => undefined).end());
  servers.push(server);
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', ...pinCertificate(pinned) });
  try {
    await once(socket, 'secureConnect');
  } finally {
    socket.destroy();
  }
}

it('accepts the pinned certificate under any host name', async () => {
  const worker = await makeWorker();
  await expect(connectPinned(worker, worker.cert)).resolves.toBeUndefined();
});

it('rejects another certificate of the same name', async () => {
  const [worker, other] = [await makeWorker(), await makeWorker()];
  await expect(connectPinned(other, worker.cert)).rejects.toThrow();
});

it('rejects a certificate that the pinned one has issued', async () => {
  const ca = await createCa('authority', 30);
  const issued = await issueCertificate(ca, {
    commonName: 'worker-1',
    names: ['127.0.0.1'],
    days: 30,
  });
  await expect(connectPinned(issued, ca.cert)).rejects.toThrow(/another certificate/);
});
