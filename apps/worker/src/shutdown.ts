import type { Egress } from '@svc/egress';
import {
  closeGracefully,
  type HttpServer,
  type RequestDrain,
  type Tracing,
} from '@svc/service-kit';
import { openDeadline, runEveryStep, Slots } from '@svc/service-kit/concurrency';
import type { ControlPlaneTransport } from './control-plane/control-plane-transport.ts';
import type { Lease } from './control-plane/lease.ts';
import type { ObjectTransfer } from './control-plane/object-transfer.ts';
import type { WorkerRegistration } from './control-plane/registration.ts';
import type { LlmGateway } from './gateway/index.ts';
import type { Metering } from './metering/metering.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Sandbox } from './sandbox/sandbox.ts';
import { discard, type Pool } from './vms/pool/pool.ts';

const CONCURRENCY = 8;
/** For saving the sessions of the sandboxes that stay, all together: their clients wait for the next worker process. */
const SAVE_MS = 10_000;
const FLUSH_MS = 3_000;
/** For telling the control plane that this worker is going away. */
export const ANNOUNCE_MS = 2_000;
const CLOSE_MS = 1_000;

export interface ShutdownParts {
  readonly app: HttpServer;
  readonly drain: RequestDrain;
  readonly registry: SandboxRegistry;
  readonly pool: Pool;
  readonly registration: WorkerRegistration;
  readonly lease: Pick<Lease, 'saved'>;
  readonly metering: Metering;
  readonly transport: ControlPlaneTransport;
  readonly transfer: ObjectTransfer;
  readonly gateway: LlmGateway;
  readonly egress: Egress;
  readonly tracing: Tracing | undefined;
  /** The background loops; `stop` ends them. */
  readonly loops: readonly Promise<void>[];
  /** Ends the loops and aborts all requests of callers. */
  readonly stop: () => void;
  /** Ends the reports to the control plane; settles when the last one has ended. */
  readonly stopReports: () => Promise<void>;
  readonly onFault: (error: unknown, action: string) => void;
}

/** What happens to the sandboxes of a worker that shuts down. */
export interface ShutdownOptions {
  readonly keepSandboxes: boolean;
  /** For saving and ending the sandboxes. Those that are left afterwards end without being saved. */
  readonly endMs: number;
}

/**
 * Shuts a worker down: refuses new work, disconnects clients, aborts requests, destroys idle VMs, and ends the sandboxes or,
 * with `keepSandboxes`, saves the frames of their sessions and leaves them running for the next worker process. A worker that
 * ends its sandboxes first tells the control plane to place no more on it, and reports each end at once, so that its session
 * can be resumed elsewhere.
 */
export async function shutDown(
  parts: ShutdownParts,
  { keepSandboxes, endMs }: ShutdownOptions,
): Promise<void> {
  const { app, drain, registry, pool, registration, lease, metering, gateway, egress } = parts;
  const { transport, transfer } = parts;
  const { loops, stop, stopReports, onFault } = parts;
  drain.refuse();
  if (!keepSandboxes) await registration.drain(ANNOUNCE_MS);
  stop();
  const live = registry.live();
  for (const sandbox of live) sandbox.connections.closeAll(1001, 'server shutting down');
  const limit = new Slots(CONCURRENCY);
  using saving = openDeadline(undefined, SAVE_MS);
  const end = async (sandbox: Sandbox) => {
    await sandbox.end('drained').catch((error) => onFault(error, `end ${sandbox.id}`));
  };
  const release = async (sandbox: Sandbox) => {
    await Promise.all([
      sandbox.agent
        ?.release(saving.signal)
        .catch((error) => onFault(error, `release the agent of ${sandbox.id}`)),
      sandbox.workspace
        ?.release()
        .catch((error) => onFault(error, `release the workspace of ${sandbox.id}`)),
    ]);
  };
  const leaving = live.filter((sandbox) => !(keepSandboxes && isAdoptable(sandbox)));
  const staying = live.filter((sandbox) => !leaving.includes(sandbox));
  const idle = pool.close();
  const deadline = setTimeout(() => {
    const late = leaving.filter((sandbox) => sandbox.isLive);
    if (late.length === 0) return;
    onFault(
      new Error(`${late.length} sandboxes did not end in ${endMs} ms`),
      'save before the end',
    );
    for (const sandbox of late) sandbox.hurryEnd();
  }, endMs);
  await Promise.all([
    ...leaving.map((sandbox) => limit.run(() => end(sandbox))),
    ...staying.map((sandbox) => limit.run(() => release(sandbox))),
    ...idle.map((pooled) =>
      limit.run(() => discard(pooled)).catch((error) => onFault(error, 'end an idle VM')),
    ),
    ...loops,
  ]);
  clearTimeout(deadline);
  await stopReports();
  await runEveryStep([
    { name: 'report to the control plane', run: () => registration.flush(FLUSH_MS) },
    { name: 'save the lease', run: () => lease.saved() },
    { name: 'report usage', run: () => metering.flush(FLUSH_MS) },
    { name: 'disconnect from the object store', run: () => transfer.close() },
    { name: 'disconnect from the control plane', run: () => transport.close() },
    { name: 'close the gateway', run: () => gateway.close() },
    { name: 'close the outgoing connections', run: () => egress.close() },
    // All work has ended: only unused connections and callers that do not read are left.
    { name: 'close the server', run: () => closeGracefully(app, CLOSE_MS) },
    { name: 'send the last spans', run: () => parts.tracing?.close() },
  ]);
}

/** Whether a later worker process can adopt the sandbox as it is. */
function isAdoptable(sandbox: Sandbox): boolean {
  const settled = sandbox.state === 'running' || sandbox.state === 'paused';
  return settled && sandbox.endReason === undefined;
}
