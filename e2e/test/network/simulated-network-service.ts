import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import type { Template } from '@svc/contract';
import { readServiceRecord } from '@svc/service-driver';
import { Access } from '../access.ts';
import { startService } from '../start-service.ts';
import type { Zone } from './dns-message.ts';
import { NETWORK } from './network-addresses.ts';
import type { PeerProcess } from './peer-process.ts';
import { SimulatedNetwork } from './simulated-network.ts';

/** A service on the host of a simulated network, which the test can access as if it ran on this machine. */
export interface SimulatedNetworkService extends AsyncDisposable {
  readonly access: Access;
  readonly network: SimulatedNetwork;
  /** A peer on the internet that answers on every address and records arrivals. */
  readonly internet: PeerProcess;
  /** A peer that listens on every address of the host. */
  readonly host: PeerProcess;
  /** Ports of the host on which the service listens: control plane and workers. */
  readonly ports: readonly number[];
}

/**
 * Starts the service with the images of some templates. The control plane listens on all addresses of the host, so that only
 * the filters keep a sandbox away.
 */
export async function startOnSimulatedNetwork(
  zone: Zone,
  templates: readonly Template[],
): Promise<SimulatedNetworkService> {
  await using failed = new AsyncDisposableStack();
  const network = failed.use(await SimulatedNetwork.open());
  const [internet, host] = await Promise.all([
    network.startPeer(network.internet, {
      tcpPorts: [NETWORK.tcpPort],
      udp: [{ address: NETWORK.public, port: NETWORK.udpPort }],
    }),
    network.startPeer(network.host, { tcpPorts: [NETWORK.hostPort] }),
    network.serveDns(zone),
  ]);
  const service = failed.use(
    await startService({
      launcher: network.launcher,
      listenEverywhere: true,
      env: { SVC_TEMPLATES: templates.join(',') },
    }),
  );
  const port = Number(new URL(service.address.baseUrl).port);
  const socketPath = join(service.dataDir, 'e2e-bridge.sock');
  await network.startPeer(network.host, { bridge: { socketPath, port } });
  const bridge = await openBridge(port, socketPath);
  failed.defer(() => bridge.close());
  const { workers = [] } = (await readServiceRecord(service.dataDir)) ?? {};
  // Without this, a test that finds the ports closed would not notice that one is missing.
  if (workers.length === 0) throw new Error('the service record names no worker');
  const ports = [port, ...workers.map(({ url }) => Number(new URL(url).port))];
  const cleanUp = failed.move();
  return {
    ...{ access: new Access(service.address), network, internet, host, ports },
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

/** Forwards the control plane's port on this machine to the same port on the host, through a Unix socket. */
async function openBridge(port: number, socketPath: string): Promise<{ close(): void }> {
  const server: Server = createServer((near) => {
    const far = connect(socketPath);
    near.on('error', () => far.destroy()).on('close', () => far.destroy());
    far.on('error', () => near.destroy()).on('close', () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.listen({ host: 'localhost', port });
  await once(server, 'listening');
  // Open connections must not keep the test process alive.
  server.unref();
  return server;
}
