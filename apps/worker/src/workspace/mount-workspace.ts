import { ServiceError } from '@svc/contract';
import { type Microvm, MicrovmError } from '@svc/microvm';
import { retry, withDeadline } from '@svc/service-kit/concurrency';
import { mayPass } from '../control-plane/control-plane-transport.ts';
import { transferMayPass } from '../control-plane/object-transfer.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { MountedWorkspace } from '../sandbox/workspace.ts';
import type { WorkspaceDeps } from './deps.ts';
import { SandboxWorkspace } from './sandbox-workspace.ts';

/** Where a workspace is in a sandbox. */
const ROOT = '/workspace';

/** Time limits for a workspace, in ms. */
export interface WorkspaceTimeouts {
  /** For a load. */
  readonly loadMs: number;
  /** For the save before a pause. */
  readonly pauseMs: number;
  /** For the last save of a sandbox, with all attempts: enough for an outage of a few minutes, or a few large files. */
  readonly finishMs: number;
  /** For the save before the worker restarts. */
  readonly releaseMs: number;
}

const TIMEOUTS: WorkspaceTimeouts = {
  loadMs: 30 * 60_000,
  pauseMs: 20_000,
  finishMs: 5 * 60_000,
  releaseMs: 10_000,
};

/** Between attempts of the last save. */
const LAST_SAVES = { baseMs: 1_000, maxMs: 10_000, attempts: Number.POSITIVE_INFINITY } as const;

export interface MountOptions {
  readonly deps: WorkspaceDeps;
  /** Called with failures that no caller learns in full. */
  readonly onFault: (error: unknown, action: string) => void;
  readonly timeouts?: Partial<WorkspaceTimeouts>;
}

/** The workspace that the placement of a sandbox names, in its VM; undefined if it names none. */
export function mountWorkspace(
  sandbox: Pick<Sandbox, 'assignment'>,
  vm: Microvm,
  options: MountOptions,
): MountedWorkspace | undefined {
  const { vm_id: vmId, generation, tenant_id: tenantId, placement } = sandbox.assignment;
  if (placement.workspace === undefined) return undefined;
  return new VmWorkspace({ vmId, generation }, tenantId, vm, options);
}

/** A workspace in a VM, with time limits, and with errors for customers. */
class VmWorkspace implements MountedWorkspace {
  readonly #vm: Microvm;
  readonly #workspace: SandboxWorkspace;
  readonly #timeouts: WorkspaceTimeouts;
  readonly #fault: (error: unknown, action: string) => void;
  #isLoaded = false;

  constructor(
    owner: { readonly vmId: string; readonly generation: number },
    tenantId: string,
    vm: Microvm,
    { deps, onFault, timeouts }: MountOptions,
  ) {
    this.#vm = vm;
    this.#timeouts = { ...TIMEOUTS, ...timeouts };
    this.#fault = (error, action) => onFault(error, `${action} of ${owner.vmId}`);
    this.#workspace = new SandboxWorkspace({
      owner,
      tenantId,
      deps,
      tree: vm.tree(ROOT),
      isRunning: () => !vm.paused,
      onFault: this.#fault,
    });
  }

  async load(signal: AbortSignal): Promise<void> {
    try {
      await this.#workspace.load(withDeadline(signal, this.#timeouts.loadMs));
    } catch (error) {
      signal.throwIfAborted();
      this.#fault(error, 'load the workspace');
      const isFull = error instanceof MicrovmError && error.code === 'disk_full';
      const code = isFull ? 'workspace_too_large' : 'workspace_unavailable';
      throw new ServiceError(code, undefined, { cause: error });
    }
  }

  start(): void {
    this.#isLoaded = true;
    this.#workspace.start();
  }

  async beforePause(): Promise<void> {
    try {
      await this.#workspace.flush(AbortSignal.timeout(this.#timeouts.pauseMs));
    } catch (cause) {
      this.#fault(cause, 'save the workspace before a pause');
      // What the guest does not give cannot be saved later either.
      if (cause instanceof MicrovmError) return;
      const detail =
        'The workspace could not be saved, so the sandbox is still running; try again.';
      throw new ServiceError('workspace_unavailable', detail, { cause });
    }
  }

  async finish(): Promise<void> {
    // A create that failed has changed nothing.
    if (!this.#isLoaded) return;
    const signal = AbortSignal.timeout(this.#timeouts.finishMs);
    try {
      // It was saved before it was paused, but not what was written meanwhile.
      if (this.#vm.paused) await this.#vm.resume(signal);
      const retries = { ...LAST_SAVES, signal, isTransient: isOutage };
      await retry(() => this.#workspace.finish(signal), retries);
    } catch (error) {
      this.#fault(error, 'save the workspace at the end');
    }
  }

  async release(): Promise<void> {
    if (!this.#isLoaded || this.#vm.paused) return this.#workspace.stop();
    try {
      await this.#workspace.finish(AbortSignal.timeout(this.#timeouts.releaseMs));
    } catch (error) {
      this.#fault(error, 'save the workspace before a restart');
    }
  }
}

/** Whether the control plane or the object store failed, and may work later. */
function isOutage(error: unknown): boolean {
  return !(error instanceof MicrovmError) && mayPass(error) && transferMayPass(error);
}
