import {
  type CancelReason,
  type ConfigUpdate,
  type ErrorCode,
  type PlaceSandboxRequest,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import type { Lie, Operation } from './lies.ts';

/** The sandboxes of the double and the behaviour that a test gives them. */
export class SandboxRecords {
  readonly sandboxes = new Map<string, WorkerSandbox>();
  /** Contents of the files of every sandbox, by path. */
  readonly files = new Map<string, Buffer>();
  /** Every creation that was requested, oldest first. */
  readonly placed: PlaceSandboxRequest[] = [];
  /** Operations that fail, each with its error code. */
  readonly failures = new Map<Operation, ErrorCode>();
  /** Operations that succeed but answer something else. */
  readonly lies = new Map<Operation, Lie>();
  /** Runs before a creation is answered. */
  beforeCreated: (request: PlaceSandboxRequest, gone: AbortSignal) => Promise<void> = async () =>
    undefined;
  /** Runs before a destruction is answered. */
  beforeDestroyed: (vmId: string) => Promise<void> = async () => undefined;
  /** Every cancel, oldest first. */
  readonly cancels: { readonly vmId: string; readonly reason: CancelReason }[] = [];
  /** Every notice of a rotation, oldest first. */
  readonly configUpdates: (ConfigUpdate & { readonly vmId: string })[] = [];
  /** Runs after a notice of a rotation has been recorded, before it is answered. */
  beforeConfigUpdated: () => Promise<void> = async () => undefined;
  /** Logs by sandbox; they outlast the sandbox. */
  readonly keptLogs = new Map<string, string>();
  /** Runs after a log has been read, before it is sent. */
  beforeLog: (vmId: string) => Promise<void> = async () => undefined;
  /** How many commands have hung so far. */
  busy = 0;
  /** Sandboxes of the hanging commands whose callers have left. */
  readonly aborted: string[] = [];
  #revision = 0;

  /** Adds a running sandbox. */
  add(request: PlaceSandboxRequest): WorkerSandbox {
    this.sandboxes.set(request.vm_id, recordOf(request));
    return this.change(request.vm_id, { running_at: new Date().toISOString() });
  }

  /** Changes a record and raises its revision, as a worker does. @throws ServiceError `sandbox_not_found` */
  change(vmId: string, changes: Partial<WorkerSandbox>): WorkerSandbox {
    const current = this.sandboxes.get(vmId);
    if (current === undefined) throw new ServiceError('sandbox_not_found');
    this.#revision += 1;
    const next = { ...current, ...changes, revision: this.#revision };
    this.sandboxes.set(vmId, next);
    return next;
  }

  /** Ends a sandbox. @throws ServiceError `sandbox_not_found` */
  end(vmId: string, reason: WorkerSandbox['end_reason'] = 'deleted'): WorkerSandbox {
    const ended_at = new Date().toISOString();
    return this.change(vmId, {
      state: 'destroyed',
      ended_at,
      ...(reason === undefined ? {} : { end_reason: reason }),
    });
  }

  /** The sandbox, resumed if it was paused. @throws ServiceError `sandbox_not_found`, `sandbox_not_running` */
  running(vmId: string): WorkerSandbox {
    const sandbox = this.sandboxes.get(vmId);
    if (sandbox === undefined) throw new ServiceError('sandbox_not_found');
    if (sandbox.state === 'paused') return this.change(vmId, { state: 'running' });
    if (sandbox.state !== 'running') throw new ServiceError('sandbox_not_running');
    return sandbox;
  }
}

function recordOf(request: PlaceSandboxRequest): WorkerSandbox {
  return {
    vm_id: request.vm_id,
    generation: request.generation,
    tenant_id: request.tenant_id,
    template: request.placement.template,
    state: 'running',
    vcpu: request.placement.size.vcpu ?? 1,
    cpu_fraction: 1,
    memory_mib: request.placement.size.memory_mib ?? 512,
    disk_mib: request.placement.size.disk_mib ?? 2048,
    rootfs: 'standard-1.qcow2',
    host_port: 22_001,
    endpoint: '127.0.0.1',
    created_at: request.created_at,
    active_connections: 0,
    cpu_seconds: 0,
  };
}
