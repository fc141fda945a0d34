import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import { INTERNAL_PREFIX, type PlaceSandboxRequest, type WorkerSandbox } from '@svc/contract';
import { createSelfSigned } from '@svc/service-kit';

/** A server that answers for every worker of the fleet, without any VM and at once. */
export interface FleetServer extends AsyncDisposable {
  readonly url: string;
  readonly certificate: string;
}

/** Starts the server. It starts every sandbox that it is asked for, and reports none in lists: the ledger has them. */
export async function startFleetServer(): Promise<FleetServer> {
  const tls = await createSelfSigned({ commonName: 'fleet', names: ['127.0.0.1'], days: 1 });
  const server = createServer({ cert: tls.cert, key: tls.key }, (request, response) => {
    answerTo(request).then(
      ({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body));
      },
      (error: Error) => response.destroy(error),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('not listening');
  return {
    url: `https://127.0.0.1:${address.port}`,
    certificate: tls.cert,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

async function answerTo(
  request: IncomingMessage,
): Promise<{ readonly status: number; readonly body: object }> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const sandboxes = `${INTERNAL_PREFIX}/sandboxes`;
  if (request.method === 'POST') {
    return { status: 201, body: started(JSON.parse(Buffer.concat(chunks).toString())) };
  }
  if (request.method === 'GET') return { status: 200, body: { sandboxes: [] } };
  const vmId = request.url?.slice(sandboxes.length + 1).split('?')[0];
  return { status: 200, body: { ...ended(String(vmId)) } };
}

function started({ vm_id, generation, tenant_id, created_at }: PlaceSandboxRequest): WorkerSandbox {
  return {
    ...REPORT,
    vm_id,
    generation,
    tenant_id,
    created_at,
    running_at: new Date().toISOString(),
  };
}

function ended(vmId: string): WorkerSandbox {
  const now = new Date().toISOString();
  return { ...REPORT, vm_id: vmId, state: 'destroyed', ended_at: now, end_reason: 'deleted' };
}

/** What a worker says of a sandbox of the simulated fleet. */
export const REPORT: WorkerSandbox = {
  vm_id: 'vm_0',
  generation: 1,
  revision: 1,
  tenant_id: 'usr_0',
  template: 'standard',
  state: 'running',
  vcpu: 1,
  cpu_fraction: 1,
  memory_mib: 512,
  disk_mib: 2048,
  rootfs: 'standard.qcow2',
  host_port: 22_000,
  endpoint: '127.0.0.1',
  created_at: new Date(0).toISOString().replace('1970', '2026'),
  active_connections: 0,
  cpu_seconds: 0,
};
