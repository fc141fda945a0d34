import { join } from 'node:path';
import { GUEST_LINK, ServiceError } from '@svc/contract';
import { createMetrics, createSelfSigned, openTracing, readBootId } from '@svc/service-kit';
import { listenAddress } from '@svc/service-kit/addresses';
import { withDeadline } from '@svc/service-kit/concurrency';
import { certificateNames, reachableUrl } from './address.ts';
import { adoptVms } from './adoption/adopt.ts';
import { assemble, type WorkerParts } from './assemble.ts';
import { systemClock } from './clock.ts';
import { instanceIdOf } from './control-plane/instance-id.ts';
import { LeaseFile } from './control-plane/lease-file.ts';
import type { RunningWorker, WorkerOptions } from './options.ts';
import { ANNOUNCE_MS, shutDown } from './shutdown.ts';
import { VERSION } from './version.ts';
import { machineLimits } from './vms/capacity/machine-limits.ts';

const ADOPT_MS = 60_000;
const CERTIFICATE_DAYS = 3650;
/** For requests that control planes sent before they knew of the drain. */
const NOTICE_MS = 1_000;

/**
 * Starts a worker: adopts the VMs of an earlier run, serves the internal API, then registers with the control plane,
 * with endless retries. A start that fails leaves only those VMs running that ran before.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { microvms, signal } = options;
  const { id: workerId } = options.identity;
  const ending = new AbortController();
  const reporting = new AbortController();
  let url = '';
  const bootId = await readBootId();
  const leaseFile = new LeaseFile(join(options.config.dataDir, 'lease.json'), bootId);
  const { clock = systemClock } = options;
  const { config, logger } = options;
  const metrics = createMetrics();
  const tracing = await openTracing({
    endpoint: config.otlpEndpoint,
    headers: config.otlpHeaders,
    ratio: config.traceRatio,
    component: 'worker',
    instance: workerId,
    version: VERSION,
    logger,
    registry: metrics,
  });
  const parts = assemble(options, {
    limits: options.capacity ?? (await machineLimits(microvms)),
    tls: await createSelfSigned({
      commonName: `svc worker ${workerId}`,
      names: certificateNames(options),
      days: CERTIFICATE_DAYS,
    }),
    version: VERSION,
    metrics,
    tracing,
    bootId,
    instanceId: await instanceIdOf(config.dataDir, bootId),
    lease: {
      file: leaseFile,
      renewedAtMs: Math.min(
        (await leaseFile.load()) ?? Number.POSITIVE_INFINITY,
        clock.monotonic(),
      ),
    },
    url: () => url,
    ending: ending.signal,
  });
  const endMs = options.config.workerEndSeconds * 1000;
  const stop = () => ending.abort(new ServiceError('shutting_down'));
  try {
    // Before the adoption, because the agents of adopted sandboxes send requests to the gateway at once.
    await parts.gateway.listen({
      host: microvms.serviceAddress,
      port: options.gatewayPort ?? GUEST_LINK.llmGatewayPort,
    });
    await adoptVms(parts.adoption, withDeadline(signal, ADOPT_MS));
    const { host, port } = options.listen;
    await parts.app.listen({ host: await listenAddress(host), port });
    url = reachableUrl(options, parts.app.server.address());
    signal.throwIfAborted();
  } catch (error) {
    const undone = { ...parts, loops: [], stop, stopReports: async () => undefined };
    await shutDown(undone, { keepSandboxes: true, endMs }).catch((fault) =>
      parts.onFault(fault, 'undo a failed start'),
    );
    throw error;
  }
  const loops = startLoops(parts, ending.signal);
  const reports = Promise.all(
    [parts.registration, parts.metering].map((loop) => loop.run(reporting.signal)),
  );
  const stopReports = async () => {
    reporting.abort(new ServiceError('shutting_down'));
    await reports;
  };
  let closing: Promise<void> | undefined;
  return {
    url,
    ready: parts.registration.registered,
    async drain(workMs, hurry) {
      await parts.registration.drain(ANNOUNCE_MS);
      const noticeMs = workMs > 0 ? NOTICE_MS : 0;
      const requests = await parts.drain.run({ noticeMs, workMs }, hurry);
      if (requests > 0) options.logger.warn({ requests }, 'work in progress is cut off');
    },
    close: ({ keepSandboxes }) => {
      closing ??= shutDown({ ...parts, loops, stop, stopReports }, { keepSandboxes, endMs });
      return closing;
    },
  };
}

function startLoops(parts: WorkerParts, signal: AbortSignal): Promise<void>[] {
  const { keeper, lease, reaper, diskPressure, orphanedJournals, logDelivery, shapes } = parts;
  const ofPool = [keeper, shapes, ...parts.warmers];
  const loops = [...ofPool, lease, reaper, diskPressure, orphanedJournals, logDelivery];
  return loops.map((loop) => loop.run(signal));
}
