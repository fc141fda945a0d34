import { join } from 'node:path';
import { isActive, type WorkerSandbox } from '@svc/contract';
import { createEgress } from '@svc/egress';
import type { Microvm } from '@svc/microvm';
import {
  type CertificatePair,
  createHopTokenVerifier,
  createTokenMinter,
  createTokenVerifier,
  type Registry,
  RequestDrain,
  type Tracing,
} from '@svc/service-kit';
import { createUnsentBudgets } from '@svc/service-kit/websocket';
import { Agents } from './agents/agents.ts';
import { linkBudgets } from './agents/link/link-budgets.ts';
import { warmUpRuntime } from './agents/link/warm-up.ts';
import { AgentLogs } from './agents/logs/agent-logs.ts';
import { LogDelivery } from './agents/logs/log-delivery.ts';
import { AGENT_TIMEOUTS } from './agents/timeouts.ts';
import { saveRates } from './chunks/save-rates.ts';
import { transferSlots } from './chunks/transfer-slots.ts';
import { systemClock } from './clock.ts';
import { ControlPlaneClient } from './control-plane/control-plane-client.ts';
import { ControlPlaneKeys } from './control-plane/control-plane-keys.ts';
import { ControlPlaneTransport } from './control-plane/control-plane-transport.ts';
import { DestroyOrders } from './control-plane/destroy-orders.ts';
import { LEASE_TIMES, Lease, type LeaseOptions } from './control-plane/lease.ts';
import { ObjectTransfer } from './control-plane/object-transfer.ts';
import { Quarantine } from './control-plane/quarantine.ts';
import { WorkerRegistration } from './control-plane/registration.ts';
import { SessionApi } from './control-plane/session-api.ts';
import { SessionChunksApi } from './control-plane/session-chunks-api.ts';
import { WorkerReporter } from './control-plane/worker-report.ts';
import { WorkspaceApi } from './control-plane/workspace-api.ts';
import { SandboxCreator } from './creating/create.ts';
import { ExecSlots } from './exec/exec-slots.ts';
import { outputRates } from './exec/output-rates.ts';
import { logFaults } from './faults.ts';
import { LlmGateway, UPSTREAM_CONNECT_MS } from './gateway/index.ts';
import { isWork } from './http/guards.ts';
import { serveSessionSockets } from './http/routes/session-socket.ts';
import { createWorkerServer } from './http/server.ts';
import { MeterFiles } from './metering/meter-files.ts';
import { Metering } from './metering/metering.ts';
import { createWorkerMetrics } from './metrics.ts';
import { OneShotStarter } from './one-shot/one-shot-starter.ts';
import type { WorkerOptions } from './options.ts';
import { SandboxPorts } from './ports/sandbox-ports.ts';
import { DiskPressure } from './reaper/disk-pressure.ts';
import { Reaper } from './reaper/reaper.ts';
import { SandboxRegistry } from './sandbox/registry.ts';
import type { Sandbox } from './sandbox/sandbox.ts';
import { DesktopRates } from './sessions/clients/desktop-rates.ts';
import { JournalClaims } from './sessions/journal/claims.ts';
import { OrphanedJournals } from './sessions/journal/orphaned-journals.ts';
import { SessionMetrics } from './sessions/metrics.ts';
import { SessionRegistry } from './sessions/registry.ts';
import { SessionStarter } from './sessions/session-starter.ts';
import { viewRates } from './sessions/view/view-rates.ts';
import { Capacity, type CapacityLimits } from './vms/capacity/capacity.ts';
import { restoreConcurrency } from './vms/capacity/machine-limits.ts';
import { cachedImages } from './vms/image-cache.ts';
import { agentShapes } from './vms/pool/agent-shapes.ts';
import { Foreground } from './vms/pool/foreground.ts';
import { PoolKeeper } from './vms/pool/keeper.ts';
import { Pool } from './vms/pool/pool.ts';
import { ShapePreparer } from './vms/pool/shape-preparer.ts';
import { PoolWarmer } from './vms/pool/warmer.ts';
import { VmMaker } from './vms/vm-maker.ts';
import type { WorkspaceDeps } from './workspace/deps.ts';
import { mountWorkspace } from './workspace/mount-workspace.ts';

const TRANSFER_STALL_MS = 60_000;

export interface AssemblyInput {
  readonly limits: CapacityLimits;
  readonly tls: CertificatePair;
  readonly version: string;
  /** The URL of this worker; known once it listens. */
  readonly url: () => string;
  /** Changes when the machine boots. */
  readonly bootId: string;
  /** Tells machines with the same worker id apart. */
  readonly instanceId: string;
  readonly lease: Pick<LeaseOptions, 'file' | 'renewedAtMs'>;
  /** Has the metrics of this process from the start. */
  readonly metrics: Registry;
  readonly tracing: Tracing | undefined;
  /** Aborts when the worker ends. */
  readonly ending: AbortSignal;
}

export type WorkerParts = ReturnType<typeof assemble>;

/** Creates the parts of a worker and connects them; starts none of them. */
export function assemble(options: WorkerOptions, input: AssemblyInput) {
  const { config, logger, microvms, identity } = options;
  const { id: workerId } = identity;
  const { tls, version, metrics, tracing, ending } = input;
  const clock = options.clock ?? systemClock;
  const onFault = logFaults(logger);
  const onChange = (record: WorkerSandbox) => {
    registration.push(record);
    if (!isActive(record.state)) metering.wake();
  };

  const registry = new SandboxRegistry(clock);
  const capacity = new Capacity(input.limits, microvms);
  const pool = new Pool(new Map(Object.entries(config.pool)), {
    onTaken(taken) {
      warmer.leave(taken);
      keeper.wake();
    },
    onFault,
  });
  const maker = new VmMaker(microvms, capacity, pool, restoreConcurrency());
  const foreground = new Foreground();
  const images = cachedImages(microvms, () => clock.monotonic());
  const keeper = new PoolKeeper({
    pool,
    maker,
    capacity,
    foreground,
    images,
    warmUp: warmUpRuntime,
    logger,
  });
  const warmer = new PoolWarmer({ pool, foreground, images, logger });
  const shapes = new ShapePreparer({
    host: microvms,
    shapes: agentShapes,
    images,
    pool,
    capacity,
    foreground,
    logger,
  });
  const execSlots = new ExecSlots();
  const {
    exec: execMetrics,
    onCreated,
    onTransferFailed,
  } = createWorkerMetrics(metrics, {
    registry,
    pool,
    execSlots,
  });

  const transport = new ControlPlaneTransport({
    url: options.controlPlane.url,
    ca: options.controlPlane.ca,
    mint: createTokenMinter(identity.key, workerId),
  });
  const controlPlaneKeys = new ControlPlaneKeys(transport, onFault);
  const client = new ControlPlaneClient(transport, workerId);
  const metering = new Metering({
    registry,
    files: new MeterFiles(join(config.dataDir, 'usage')),
    client,
    bootId: input.bootId,
    clock,
    logger,
    onFault,
  });
  const egress = createEgress({
    allowHosts: config.egressAllowHosts,
    caFile: config.egressCaFile,
    connectMs: UPSTREAM_CONNECT_MS,
  });
  const gateway = new LlmGateway({ egress, metrics, logger });
  const sessions = new SessionRegistry();
  const logs = new AgentLogs(join(config.dataDir, 'logs', 'agents'));
  const journals = {
    directory: join(config.dataDir, 'sessions'),
    claims: new JournalClaims(),
    clock,
  };
  const api = new SessionApi(transport);
  const { url: controlPlaneUrl, ca } = options.controlPlane;
  const transfer = new ObjectTransfer({ url: controlPlaneUrl, ca, onFailure: onTransferFailed });
  const rates = saveRates(config.limits.savedBytesPerSecond);
  const slots = transferSlots();
  const delivery = new LogDelivery({ logs, api, registry, clock, logger, onFault });
  const agentDeps = {
    api,
    chunks: {
      api: new SessionChunksApi(transport),
      transfer,
      saves: slots.sessionSaves,
      rates,
    },
    largeCommits: slots.largeCommits,
    accounts: gateway,
    metrics: new SessionMetrics(metrics, sessions),
    logs,
    delivery,
    metering,
    desktops: new DesktopRates(),
    unsent: createUnsentBudgets(),
    links: linkBudgets(options.linkBytesPerTenant),
    views: viewRates(config.limits.viewBytesPerSecond),
    clock,
    logger,
    timeouts: { ...AGENT_TIMEOUTS, ...options.agentTimeouts },
    onFault,
  };
  const workspaceApi = new WorkspaceApi(transport);
  const workspaces: WorkspaceDeps = {
    api: workspaceApi,
    chunks: { api: workspaceApi, transfer, saves: slots.workspaceSaves, rates },
    objects: transfer,
    slots: { loads: slots.workspaceLoads, flushes: slots.workspaceFlushes },
  };
  const mount = (sandbox: Sandbox, vm: Microvm) =>
    mountWorkspace(sandbox, vm, { deps: workspaces, onFault });
  const agents = new Agents({
    oneShot: new OneShotStarter({
      registry: sessions,
      files: journals,
      agents: { ...agentDeps, egress },
    }),
    session: new SessionStarter({
      registry: sessions,
      files: { ...journals, api },
      sessions: agentDeps,
    }),
  });
  const beforeDestroy = (sandbox: Sandbox) => metering.saveSample(sandbox);
  const creator = new SandboxCreator({
    registry,
    agents,
    mountWorkspace: mount,
    pool,
    maker,
    foreground,
    images,
    clock,
    onChange,
    beforeDestroy,
    onFault,
    onCreated,
  });
  const orders = new DestroyOrders(registry, onFault);
  const quarantine = new Quarantine({ registry, logger, onFault });
  const registration = new WorkerRegistration({
    client,
    reporter: new WorkerReporter({ registry, capacity, pool, images }),
    identity: () => ({
      worker_id: workerId,
      url: input.url(),
      certificate: tls.cert,
      version,
      instance_id: input.instanceId,
    }),
    clock,
    logger,
    onAccepted: ({ destroy, quarantine: held }, sentAtMs) => {
      if (held !== undefined) quarantine.apply(held);
      // First, because the lease releases what may run.
      orders.carryOut(destroy);
      lease.renew(sentAtMs);
      reaper.begin();
      controlPlaneKeys.refresh();
    },
    onDrainOrder: options.onDrainOrder ?? (() => undefined),
  });
  const lease = new Lease({
    ...input.lease,
    times: options.lease ?? LEASE_TIMES,
    registry,
    clock,
    logger,
    onFault,
  });
  const drain = new RequestDrain(isWork);
  const app = createWorkerServer(
    {
      drain,
      workerId,
      version,
      registry,
      creator,
      execSlots,
      outputRates: outputRates(config.limits.outputBytesPerSecond),
      ports: new SandboxPorts(),
      transfers: { maxUploadBytes: config.limits.uploadBytes, stallMs: TRANSFER_STALL_MS },
      agentLogs: logs,
      verify: createTokenVerifier(controlPlaneKeys.find, workerId),
      metrics,
      execMetrics,
      ending,
    },
    { logger, tls, tracing, sessions },
  );
  serveSessionSockets(app, {
    sessions,
    verify: createHopTokenVerifier(controlPlaneKeys.find, workerId),
    ending,
  });
  const reaper = new Reaper({ registry, clock, onFault });
  const diskPressure = new DiskPressure({ registry, machine: microvms, logger, onFault });
  return {
    adoption: {
      microvms,
      registry,
      pool,
      capacity,
      images,
      clock,
      logger,
      onChange,
      beforeDestroy,
      onFault,
      adoptAgent: (sandbox: Sandbox, vm: Microvm) => agents.adopt(sandbox, vm),
      mountWorkspace: mount,
    },
    app,
    diskPressure,
    drain,
    egress,
    gateway,
    keeper,
    lease,
    logDelivery: delivery,
    orphanedJournals: new OrphanedJournals({ ...journals, api, onFault }),
    metering,
    registration,
    onFault,
    pool,
    reaper,
    registry,
    shapes,
    tracing,
    transport,
    transfer,
    warmers: microvms.accelerator === 'tcg' ? [warmer] : [],
  };
}
