import type { EndReason, SandboxState, WorkerSandbox } from '@svc/contract';
import type { ImageInfo, Microvm, MicrovmHost } from '@svc/microvm';
import type { Clock } from '../clock.ts';
import type { SandboxAgent } from '../creating/agent-starter.ts';
import type { WorkerLogger } from '../logger.ts';
import type { SandboxLabels } from '../sandbox/labels.ts';
import { factsOf } from '../sandbox/record.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { Capacity } from '../vms/capacity/capacity.ts';
import type { Pool } from '../vms/pool/pool.ts';
import type { Size } from '../vms/sizes.ts';
import { classify } from './classify.ts';

/** More than a sandbox can have changed since its labels were written last. */
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
  readonly onFault: (error: unknown, what: string) => void;
  /** Goes on with the agent of a sandbox that is taken up, if it has one. */
  readonly adoptAgent: (sandbox: Sandbox, vm: Microvm) => Promise<SandboxAgent | undefined>;
}

/**
 * Takes up the VMs that an earlier worker process left: sandboxes go on with the deadlines they had, idle VMs
 * return to the pool, what was half made or half ended is ended. A sandbox whose VM died meanwhile is not
 * known any more; the control plane sees that it is missing. Endings go on in the background.
 */
export async function adoptVms(deps: AdoptDeps, signal: AbortSignal): Promise<void> {
  const vms = await deps.microvms.adopt(signal);
  if (vms.length === 0) return;
  const current = new Set((await deps.images()).map((image) => image.rootfs));
  const counts = { keep: 0, end: 0, pool: 0, discard: 0 };
  for (const vm of oldestGenerationFirst(vms)) {
    counts[await adoptVm(vm, current, deps)] += 1;
  }
  deps.logger.info(counts, 'took up the VMs of an earlier run');
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
  const reason = verdict.kind === 'end' ? verdict.reason : undefined;
  const sandbox = rebuild(vm, verdict.labels, verdict.state, reason, deps);
  endSuperseded(sandbox, deps);
  deps.registry.add(sandbox);
  const agentIsKept = await adoptAgent(sandbox, vm, deps);
  sandbox.attach(vm, deps.capacity.adopt(sizeOfVm(vm)));
  const isOver = deps.clock.monotonic() >= sandbox.lifetimeEndsAt;
  const ending = reason ?? (isOver ? 'max_lifetime' : agentIsKept ? undefined : 'worker_lost');
  if (ending === undefined) return 'keep';
  sandbox.end(ending).catch((error) => deps.onFault(error, 'end a left-over sandbox'));
  return 'end';
}

function rebuild(
  vm: Microvm,
  labels: SandboxLabels,
  state: SandboxState,
  endReason: EndReason | undefined,
  deps: AdoptDeps,
): Sandbox {
  const sandbox = new Sandbox({
    placement: {
      vmId: labels.vm_id,
      generation: labels.generation,
      tenantId: labels.tenant_id,
      template: vm.template,
      createdAt: labels.created_at,
      idleTimeoutSeconds: labels.idle_timeout_seconds,
      maxLifetimeSeconds: labels.max_lifetime_seconds,
      lifetimeEndsAt: labels.lifetime_ends_at,
      agent: labels.agent,
    },
    facts: factsOf(vm),
    clock: deps.clock,
    onChange: deps.onChange,
    onFault: deps.onFault,
    from: {
      state,
      revision: labels.revision + UNSEEN_REVISIONS,
      runningAt: labels.running_at,
      endReason,
      agentExitCode: labels.agent?.exit_code,
    },
  });
  return sandbox;
}

/**
 * Goes on with the agent, also of a sandbox that ends at once: what it left behind is still to be brought home.
 * False when that cannot be.
 */
async function adoptAgent(sandbox: Sandbox, vm: Microvm, deps: AdoptDeps): Promise<boolean> {
  if (!sandbox.hasRun) return true;
  try {
    sandbox.agent = await deps.adoptAgent(sandbox, vm);
    return true;
  } catch (error) {
    deps.onFault(error, `go on with the agent of ${sandbox.id}`);
    return false;
  }
}

/** Two VMs of one sandbox are two generations of it; only the newest is the sandbox. */
function endSuperseded(sandbox: Sandbox, { registry, onFault }: AdoptDeps): void {
  const earlier = registry.find(sandbox.id);
  earlier?.end('worker_lost').catch((error) => onFault(error, 'end a superseded sandbox'));
}

function oldestGenerationFirst(vms: readonly Microvm[]): Microvm[] {
  const generation = (vm: Microvm) => {
    const verdict = classify(vm);
    return 'labels' in verdict ? verdict.labels.generation : 0;
  };
  return [...vms].sort((a, b) => generation(a) - generation(b));
}

function sizeOfVm({ vcpu, memoryMib, diskMib }: Microvm): Size {
  return { vcpu, memoryMib, diskMib };
}
