import type { Egress } from '@svc/egress';
import { closeGracefully, type HttpServer } from '@svc/service-kit';
import { Slots } from '@svc/service-kit/concurrency';
import type { ControlPlaneTransport } from './control-plane/control-plane-transport.ts';
import type { WorkerRegistration } from './control-plane/registration.ts';
import type { LlmGateway } from './gateway/index.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Sandbox } from './sandbox/sandbox.ts';
import { discard, type Pool } from './vms/pool/pool.ts';

const CONCURRENCY = 8;
const FLUSH_MS = 3_000;
const CLOSE_MS = 1_000;

export interface ShutdownParts {
  readonly app: HttpServer;
  readonly registry: SandboxRegistry;
  readonly pool: Pool;
  readonly registration: WorkerRegistration;
  readonly transport: ControlPlaneTransport;
  readonly gateway: LlmGateway;
  readonly egress: Egress;
  /** The background loops; `stop` ends them. */
  readonly loops: readonly Promise<void>[];
  /** Ends the loops and aborts all requests of callers. */
  readonly stop: () => void;
  readonly onFault: (error: unknown, action: string) => void;
}

/**
 * Shuts a worker down: refuses new work, disconnects clients, aborts requests, destroys idle VMs, and ends the sandboxes
 * or, with `keepSandboxes`, leaves them running for the next worker process. Then reports to the control plane.
 */
export async function shutDown(
  parts: ShutdownParts,
  { keepSandboxes }: { readonly keepSandboxes: boolean },
): Promise<void> {
  const { app, registry, pool, registration, transport, gateway, egress, loops, stop, onFault } =
    parts;
  stop();
  const live = registry.live();
  for (const sandbox of live) sandbox.connections.closeAll(1001, 'server shutting down');
  const limit = new Slots(CONCURRENCY);
  const end = async (sandbox: Sandbox) => {
    await sandbox.end('drained').catch((error) => onFault(error, `end ${sandbox.id}`));
  };
  const release = async (sandbox: Sandbox) => {
    await sandbox.agent
      ?.release()
      .catch((error) => onFault(error, `release the agent of ${sandbox.id}`));
  };
  const leaving = live.filter((sandbox) => !(keepSandboxes && isAdoptable(sandbox)));
  const staying = live.filter((sandbox) => !leaving.includes(sandbox));
  const idle = pool.close();
  await Promise.all([
    ...leaving.map((sandbox) => limit.run(() => end(sandbox))),
    ...staying.map((sandbox) => limit.run(() => release(sandbox))),
    ...idle.map((pooled) =>
      limit.run(() => discard(pooled)).catch((error) => onFault(error, 'end an idle VM')),
    ),
    ...loops,
  ]);
  await registration.flush(FLUSH_MS);
  await transport.close();
  await gateway.close();
  await egress.close();
  // All work has ended: only unused connections and callers that do not read are left.
  await closeGracefully(app, CLOSE_MS);
}

/** Whether a later worker process can adopt the sandbox as it is. */
function isAdoptable(sandbox: Sandbox): boolean {
  const settled = sandbox.state === 'running' || sandbox.state === 'paused';
  return settled && sandbox.endReason === undefined;
}
