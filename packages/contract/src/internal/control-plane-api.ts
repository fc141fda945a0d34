/** The control plane's API for workers, below `/internal/v1`. */

import { type Static, Type } from 'typebox';
import { END_REASONS } from '../states.ts';
import { Count, ShortText } from './bounds.ts';
import { ComponentId } from './identity.ts';
import { OpenEnum } from './open-enum.ts';
import { WorkerSandbox } from './sandbox.ts';

export const Capacity = Type.Object({
  vcpu: Count(),
  memory_mib: Count(),
  disk_mib: Count(),
});
export type Capacity = Static<typeof Capacity>;

export const FreeCapacity = Type.Object({
  memory_mib: Count(),
  disk_mib: Count(),
});
export type FreeCapacity = Static<typeof FreeCapacity>;

/** A build of an agent that an image carries. A newer worker may have kinds that this control plane does not know. */
export const AgentBuild = Type.Object({ kind: ShortText(1), version: ShortText(1) });
export type AgentBuild = Static<typeof AgentBuild>;

/** A template on a worker; `image` is empty until one is built. Sizes are the template's defaults. */
export const WorkerTemplate = Type.Object({
  template: ShortText(1),
  image: ShortText(),
  ready: Type.Boolean(),
  vcpu: Type.Optional(Count(1)),
  memory_mib: Type.Optional(Count(1)),
  disk_mib: Type.Optional(Count(1)),
  agents: Type.Optional(Type.Array(AgentBuild)),
});
export type WorkerTemplate = Static<typeof WorkerTemplate>;

/**
 * Whether a worker is about to end, with its sandboxes or without. It gets no new ones, and other work waits for its next
 * process.
 */
const Draining = Type.Optional(Type.Boolean());

/**
 * Tells machines with the same worker id apart. All processes of a worker have the same one until its machine boots or its
 * data directory is replaced.
 */
const InstanceId = Type.Optional(ShortText(1));

export const RegisterWorkerRequest = Type.Object({
  worker_id: ComponentId,
  url: Type.String({ maxLength: 2048, pattern: '^https://[\\x21-\\x7e]+$' }),
  certificate: Type.String({
    maxLength: 65_536,
    pattern: '^[\\r\\n\\x20-\\x7e]*$',
    description: 'PEM; pinned as the only CA.',
  }),
  version: ShortText(),
  capacity: Capacity,
  templates: Type.Array(WorkerTemplate),
  sandboxes: Type.Array(WorkerSandbox),
  draining: Draining,
  instance_id: InstanceId,
});
export type RegisterWorkerRequest = Static<typeof RegisterWorkerRequest>;

/** An order to destroy. A worker that holds a newer generation of the sandbox ignores it. */
export const DestroyOrder = Type.Object({
  vm_id: Type.String(),
  generation: Type.Integer({ minimum: 0 }),
  reason: OpenEnum(END_REASONS),
});
export type DestroyOrder = Static<typeof DestroyOrder>;

/**
 * An order to keep a sandbox, but to let nobody use it: its VM stands still until a later answer does not name it. The
 * ledger has lost it, because it was restored from a backup.
 */
export const QuarantineOrder = Type.Object({
  vm_id: Type.String(),
  generation: Type.Integer({ minimum: 0 }),
});
export type QuarantineOrder = Static<typeof QuarantineOrder>;

/** The orders in the answer to a report. */
const Orders = {
  destroy: Type.Array(DestroyOrder),
  quarantine: Type.Optional(Type.Array(QuarantineOrder)),
};

export const RegisterWorkerResponse = Type.Object({
  heartbeat_interval_ms: Type.Integer({ minimum: 1 }),
  ...Orders,
});
export type RegisterWorkerResponse = Static<typeof RegisterWorkerResponse>;

/** A complete report. */
export const HeartbeatRequest = Type.Object({
  capacity: Capacity,
  free: FreeCapacity,
  templates: Type.Array(WorkerTemplate),
  sandboxes: Type.Array(WorkerSandbox),
  draining: Draining,
  instance_id: InstanceId,
});
export type HeartbeatRequest = Static<typeof HeartbeatRequest>;

/** `drain`: an operator wants the worker to end its sandboxes in order, and then itself. */
export const HeartbeatResponse = Type.Object({
  ...Orders,
  drain: Type.Optional(Type.Boolean()),
});
export type HeartbeatResponse = Static<typeof HeartbeatResponse>;

/**
 * A short report: what has changed since the last report that was accepted, be it short or complete. Capacity and templates
 * that are absent have not changed, and sandboxes that are absent are alive as they were.
 */
export const RenewLeaseRequest = Type.Object({
  capacity: Type.Optional(Capacity),
  free: FreeCapacity,
  templates: Type.Optional(Type.Array(WorkerTemplate)),
  sandboxes: Type.Array(WorkerSandbox),
  draining: Draining,
  instance_id: InstanceId,
});
export type RenewLeaseRequest = Static<typeof RenewLeaseRequest>;

/** `report_all`: there are orders that only a complete report gets, and it is wanted at once. */
export const RenewLeaseResponse = Type.Object({
  destroy: Type.Array(DestroyOrder),
  report_all: Type.Optional(Type.Boolean()),
  drain: Type.Optional(Type.Boolean()),
});
export type RenewLeaseResponse = Static<typeof RenewLeaseResponse>;

export const WorkerEventsRequest = Type.Object({
  events: Type.Array(WorkerSandbox, { minItems: 1, maxItems: 1000 }),
});
export type WorkerEventsRequest = Static<typeof WorkerEventsRequest>;

export const WorkerParams = Type.Object({ worker_id: Type.String() });
export type WorkerParams = Static<typeof WorkerParams>;

export const WORKER_TIMES = {
  heartbeatIntervalMs: 5_000,
  /** After this much time a report is complete, and names every sandbox. Others name what has changed. */
  completeReportMs: 30_000,
  /**
   * After this much silence a worker gets no new sandboxes, lists show its sandboxes from the ledger, a session that its
   * client cannot reach goes on elsewhere, and another machine may have its id.
   */
  unreachableMs: 30_000,
  /** After this much silence, instead of `unreachableMs`, the sessions of a worker that announced a restart go on elsewhere. */
  restartMs: 60_000,
  /** After this much time without an accepted report a worker holds the VMs of sessions: before they go on elsewhere. */
  sessionLeaseMs: 25_000,
  /** After this much time without an accepted report a worker holds all VMs: before they are given up. */
  sandboxLeaseMs: 240_000,
  /** After this much silence the sandboxes of a worker are ended as `worker_lost`. */
  lostMs: 300_000,
} as const;
