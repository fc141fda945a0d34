import { GUEST_LINK, ServiceError } from '@svc/contract';
import { createSelfSigned } from '@svc/service-kit';
import { withDeadline } from '@svc/service-kit/concurrency';
import { certificateNames, reachableUrl } from './address.ts';
import { adoptVms } from './adoption/adopt.ts';
import { assemble, type WorkerParts } from './assemble.ts';
import type { RunningWorker, WorkerOptions } from './options.ts';
import { shutDown } from './shutdown.ts';
import { readVersion } from './version.ts';
import { machineLimits } from './vms/capacity/machine-limits.ts';

const ADOPT_MS = 60_000;
const CERTIFICATE_DAYS = 3650;

/**
 * Starts a worker: adopts the VMs of an earlier run, serves the internal API, then registers with the control plane,
 * with endless retries. A start that fails leaves only those VMs running that ran before.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { microvms, signal, workerId } = options;
  const ending = new AbortController();
  let url = '';
  const parts = assemble(options, {
    limits: options.capacity ?? (await machineLimits(microvms)),
    tls: await createSelfSigned({
      commonName: `svc worker ${workerId}`,
      names: certificateNames(options),
      days: CERTIFICATE_DAYS,
    }),
    version: readVersion(),
    url: () => url,
    ending: ending.signal,
  });
  const stop = () => ending.abort(new ServiceError('shutting_down'));
  try {
    // Before the adoption, because the agents of adopted sandboxes send requests to the gateway at once.
    await parts.gateway.listen({
      host: microvms.serviceAddress,
      port: options.gatewayPort ?? GUEST_LINK.llmGatewayPort,
    });
    await adoptVms(parts.adoption, withDeadline(signal, ADOPT_MS));
    await parts.app.listen(options.listen);
    url = reachableUrl(options, parts.app.server.address());
    signal.throwIfAborted();
  } catch (error) {
    await shutDown({ ...parts, loops: [], stop }, { keepSandboxes: true });
    throw error;
  }
  const loops = startLoops(parts, ending.signal);
  let closing: Promise<void> | undefined;
  return {
    url,
    ready: parts.registration.registered,
    close: (how) => {
      closing ??= shutDown({ ...parts, loops, stop }, how);
      return closing;
    },
  };
}

function startLoops(parts: WorkerParts, signal: AbortSignal): Promise<void>[] {
  const { registration, keeper, reaper, orphanedJournals, shapes } = parts;
  return [registration, keeper, reaper, orphanedJournals, shapes].map((loop) => loop.run(signal));
}
