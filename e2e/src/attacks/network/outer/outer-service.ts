import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { type Service, startService } from '../../../support/start-service.ts';
import { OUTER } from './addresses.ts';
import type { Zone } from './dns-message.ts';
import { OuterNetwork } from './outer-network.ts';
import type { PeerProcess } from './peer-process.ts';

/** A service on the machine of an outer network, which the test reaches as if it ran here. */
export interface OuterService extends AsyncDisposable {
  readonly service: Service;
  readonly network: OuterNetwork;
  /** The world: answers everywhere, and remembers who came. */
  readonly world: PeerProcess;
  /** Something that listens on every address of the machine. */
  readonly machine: PeerProcess;
  /** Ports of the machine at which the service listens: control plane and worker. */
  readonly ports: readonly number[];
}

/** Starts it, the control plane open to every address of the machine, so that only filters keep a sandbox away. */
export async function startOuterService(zone: Zone): Promise<OuterService> {
  await using failed = new AsyncDisposableStack();
  const network = failed.use(await OuterNetwork.open());
  await network.serveDns(zone);
  const world = await network.startPeer(network.world, {
    tcpPorts: [OUTER.tcpPort],
    udp: [{ address: OUTER.public, port: OUTER.udpPort }],
  });
  const machine = await network.startPeer(network.machine, { tcpPorts: [OUTER.machinePort] });
  const service = failed.use(
    await startService({ launcher: network.launcher, listenEverywhere: true }),
  );
  const port = Number(new URL(service.address.baseUrl).port);
  const socketPath = join(service.dataDir, 'e2e-bridge.sock');
  await network.startPeer(network.machine, { bridge: { socketPath, port } });
  const bridge = await openBridge(port, socketPath);
  failed.defer(() => bridge.close());
  const record = JSON.parse(await readFile(join(service.dataDir, 'service.json'), 'utf8')) as {
    workers: { url: string }[];
  };
  const ports = [port, ...record.workers.map(({ url }) => Number(new URL(url).port))];
  const cleanUp = failed.move();
  return {
    ...{ service, network, world, machine, ports },
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

/** The control plane's port on this side, which leads to the one on the machine. */
async function openBridge(port: number, socketPath: string): Promise<{ close(): void }> {
  const server: Server = createServer((near) => {
    const far = connect(socketPath);
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.listen({ host: 'localhost', port });
  await once(server, 'listening');
  // Connections that are still open keep nothing alive.
  server.unref();
  return server;
}
