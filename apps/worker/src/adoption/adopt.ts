import type { WorkerSandbox } from '@svc/contract';
import type { ImageInfo, Microvm, MicrovmHost } from '@svc/microvm';
import type { Clock } from '../clock.ts';
import type { WorkerLogger } from '../logger.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import { factsOf } from '../sandbox/record.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { MountedWorkspace } from '../sandbox/workspace.ts';
import type { Capacity } from '../vms/capacity/capacity.ts';
import type { Pool } from '../vms/pool/pool.ts';
import type { Size } from '../vms/sizes.ts';
import { classify, type Verdict } from './classify.ts';

/** More changes than a sandbox can have had since its labels were last written. */
const UNSEEN_REVISIONS = 100;

export interface AdoptDeps {
  readonly microvms: MicrovmHost;
  readonly registry: SandboxRegistry;
  readonly pool: Pool;
  readonly capacity: Capacity;
  readonly images: () => Promise<ImageInfo[]>;
  readonly clock: Clock;
  readonly logger: WorkerLogger;
  readonly onChange: (record: WorkerSandbox) => void;
  /** See `SandboxOptions`. */
  readonly beforeDestroy: (sandbox: Sandbox) => Promise<void>;
  readonly onFault: (error: unknown, action: string) => void;
  /** Takes over the agent of an adopted sandbox, if it has one. */
  readonly adoptAgent: (sandbox: Sandbox, vm: Microvm) => Promise<SandboxAgent | undefined>;
  /** The workspace of a sandbox, if it has one. */
  readonly mountWorkspace: (sandbox: Sandbox, vm: Microvm) => MountedWorkspace | undefined;
}

/**
 * Adopts the VMs that an earlier worker process left. Sandboxes continue with their deadlines, idle VMs return to the
 * pool, and sandboxes that were half made or half ended are ended, in the background. A sandbox whose VM has died
 * is no longer known; the control plane notices that it is missing.
 */
export async function adoptVms(deps: AdoptDeps, signal: AbortSignal): Promise<void> {
  const vms = await deps.microvms.adopt(signal);
  if (vms.length === 0) return;
  const current = new Set((await deps.images()).map((image) => image.rootfs));
  const counts = { keep: 0, end: 0, pool: 0, discard: 0 };
  for (const vm of oldestGenerationFirst(vms)) {
    counts[await adoptVm(vm, current, deps)] += 1;
  }
  deps.logger.info(counts, 'adopted the VMs of an earlier run');
}

async function adoptVm(
  vm: Microvm,
  currentImages: ReadonlySet<string>,
  deps: AdoptDeps,
): Promise<'keep' | 'end' | 'pool' | 'discard'> {
  const verdict = classify(vm);
  if (verdict.kind === 'pool' && currentImages.has(vm.image)) {
    const reservation = deps.capacity.adopt(sizeOfVm(vm));
    if (deps.pool.put({ vm, reservation })) return 'pool';
    reservation.release();
  }
  if (verdict.kind === 'pool' || verdict.kind === 'discard') {
    vm.destroy().catch((error) => deps.onFault(error, 'destroy a left-over VM'));
    return 'discard';
  }
  const sandbox = rebuild(vm, verdict, deps);
  endSuperseded(sandbox, deps);
  deps.registry.add(sandbox);
  const { agent, isLost } = await adoptAgent(sandbox, vm, deps);
  const workspace = sandbox.hasRun ? deps.mountWorkspace(sandbox, vm) : undefined;
  const reservation = deps.capacity.adopt(sizeOfVm(vm));
  sandbox.adopt({ vm, reservation }, { agent, workspace });
  const lost = isLost && !sandbox.isQuarantined ? 'worker_lost' : undefined;
  const reason = verdict.kind === 'end' ? verdict.reason : lost;
  if (reason === undefined) return 'keep';
  sandbox.end(reason).catch((error) => deps.onFault(error, 'end a left-over sandbox'));
  return 'end';
}

function rebuild(
  vm: Microvm,
  verdict: Extract<Verdict, { kind: 'keep' | 'end' }>,
  { clock, onChange, beforeDestroy, onFault }: AdoptDeps,
): Sandbox {
  const { assignment, progress } = verdict;
  return new Sandbox({
    assignment,
    facts: factsOf(vm),
    clock,
    onChange,
    beforeDestroy,
    onFault,
    from: {
      ...progress,
      revision: progress.revision + UNSEEN_REVISIONS,
      ...(verdict.kind === 'end' ? { end_reason: verdict.reason } : {}),
    },
  });
}

/**
 * Takes over the agent, even of a sandbox that is ended immediately: its work has yet to be saved. A sandbox that was
 * never running has no agent to take over.
 */
async function adoptAgent(
  sandbox: Sandbox,
  vm: Microvm,
  deps: AdoptDeps,
): Promise<{ readonly agent: SandboxAgent | undefined; readonly isLost: boolean }> {
  if (!sandbox.hasRun) return { agent: undefined, isLost: false };
  try {
    return { agent: await deps.adoptAgent(sandbox, vm), isLost: false };
  } catch (error) {
    deps.onFault(error, `take over the agent of ${sandbox.id}`);
    return { agent: undefined, isLost: true };
  }
}

/** Two VMs of one sandbox are two generations of it; only the newest one counts. */
function endSuperseded(sandbox: Sandbox, { registry, onFault }: AdoptDeps): void {
  const earlier = registry.find(sandbox.id);
  earlier?.end('worker_lost').catch((error) => onFault(error, 'end a superseded sandbox'));
}

function oldestGenerationFirst(vms: readonly Microvm[]): Microvm[] {
  const generation = (vm: Microvm) => {
    const verdict = classify(vm);
    return 'assignment' in verdict ? verdict.assignment.generation : 0;
  };
  return [...vms].sort((a, b) => generation(a) - generation(b));
}

function sizeOfVm({ vcpu, memoryMib, diskMib }: Microvm): Size {
  return { vcpu, memoryMib, diskMib };
}
