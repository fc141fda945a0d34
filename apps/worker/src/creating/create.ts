import {
  type EndReason,
  isServiceError,
  type PlacedAgent,
  type PlaceSandboxRequest,
  ServiceError,
  type WorkerSandbox,
} from '@svc/contract';
import type { ImageInfo, Microvm } from '@svc/microvm';
import { untilAborted, withDeadline } from '@svc/service-kit/concurrency';
import { inSpan } from '@svc/service-kit/tracing';
import type { AgentStarter } from '../agents/agent-starter.ts';
import type { Clock } from '../clock.ts';
import { assignmentOf } from '../sandbox/assignment.ts';
import { toCreateError } from '../sandbox/microvm-errors.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import { Sandbox } from '../sandbox/sandbox.ts';
import type { MountedWorkspace } from '../sandbox/workspace.ts';
import type { Foreground } from '../vms/pool/foreground.ts';
import { sizeOf } from '../vms/sizes.ts';
import { type AcquireDeps, acquire, hostnameOf } from './acquire.ts';

export interface CreateDeps extends AcquireDeps {
  readonly registry: SandboxRegistry;
  readonly foreground: Foreground;
  readonly images: () => Promise<ImageInfo[]>;
  readonly agents: AgentStarter;
  /** The workspace of a sandbox, if its placement names one. Not loaded yet. */
  readonly mountWorkspace: (sandbox: Sandbox, vm: Microvm) => MountedWorkspace | undefined;
  readonly clock: Clock;
  readonly onChange: (record: WorkerSandbox) => void;
  /** See `SandboxOptions`. */
  readonly beforeDestroy: (sandbox: Sandbox) => Promise<void>;
  /** Called with the duration of each create, in seconds. */
  readonly onCreated: (seconds: number, outcome: 'created' | 'failed') => void;
}

/** A create in progress, with the number of callers that wait for it. */
interface Flight {
  readonly generation: number;
  readonly result: Promise<Sandbox>;
  readonly abandon: () => void;
  callers: number;
}

/** Less than the deadline of control planes, so that they learn why a create failed. */
const CREATE_MS = 110_000;

/**
 * Creates sandboxes. Idempotent by id and generation: concurrent and repeated requests share one create. A create is
 * rolled back completely when it fails, when all its callers have left, or when its sandbox ends first.
 */
export class SandboxCreator {
  readonly #deps: CreateDeps;
  readonly #flights = new Map<string, Flight>();

  constructor(deps: CreateDeps) {
    this.#deps = deps;
  }

  /**
   * @throws ServiceError `unknown_template`, `agent_version_unavailable`, `no_capacity`, `boot_failed`,
   *   `stale_generation`, `sandbox_not_running`, `workspace_unavailable`, `workspace_too_large`
   */
  async create(request: PlaceSandboxRequest, caller: AbortSignal): Promise<Sandbox> {
    const flight = this.#join(request) ?? (await this.#start(request));
    if (flight instanceof Sandbox) {
      if (flight.endReason !== undefined) throw new ServiceError('sandbox_not_running');
      return flight;
    }
    flight.callers += 1;
    try {
      return await untilAborted(flight.result, caller);
    } finally {
      flight.callers -= 1;
      if (flight.callers === 0 && caller.aborted) flight.abandon();
    }
  }

  #join(request: PlaceSandboxRequest): Flight | undefined {
    const flight = this.#flights.get(request.vm_id);
    return flight?.generation === request.generation ? flight : undefined;
  }

  async #start(request: PlaceSandboxRequest): Promise<Flight | Sandbox> {
    const known = await this.#settleEarlier(request);
    if (known !== undefined) return known;
    const images = await this.#deps.images();
    // Another caller may have started the create while this one waited.
    const joined = this.#join(request) ?? this.#deps.registry.find(request.vm_id);
    if (joined !== undefined && !(joined instanceof Sandbox && !joined.isLive)) {
      if (joined instanceof Sandbox && joined.assignment.generation !== request.generation) {
        throw new ServiceError('stale_generation');
      }
      return joined;
    }
    const image = images.find(
      ({ template, ready }) => template === request.placement.template && ready,
    );
    if (image === undefined) throw new ServiceError('unknown_template');
    if (!carries(image, request.placement.agent)) {
      throw new ServiceError('agent_version_unavailable');
    }
    return this.#launch(request, image);
  }

  /** The sandbox that the same request created earlier. Ends an older generation first. */
  async #settleEarlier(request: PlaceSandboxRequest): Promise<Sandbox | undefined> {
    const earlier = this.#deps.registry.find(request.vm_id);
    if (earlier === undefined) return undefined;
    const { generation } = earlier.assignment;
    if (generation > request.generation) throw new ServiceError('stale_generation');
    if (generation === request.generation) {
      if (earlier.isLive) return earlier;
      // A create that was rolled back left nothing, so it may be retried; an ended sandbox stays ended.
      if (earlier.endReason === 'boot_failed') return undefined;
      throw new ServiceError('sandbox_not_running');
    }
    await earlier.end('worker_lost');
    return undefined;
  }

  #launch(request: PlaceSandboxRequest, image: ImageInfo): Flight {
    const { registry, foreground } = this.#deps;
    const sandbox = this.#makeSandbox(request, image);
    registry.add(sandbox);
    const result = foreground
      .run(() => this.#bringUp(sandbox, request, image))
      .finally(() => this.#flights.delete(request.vm_id));
    const flight: Flight = {
      generation: request.generation,
      result,
      abandon: () => this.#rollBack(sandbox),
      callers: 0,
    };
    this.#flights.set(request.vm_id, flight);
    return flight;
  }

  #makeSandbox(request: PlaceSandboxRequest, image: ImageInfo): Sandbox {
    const { registry, clock, onChange, beforeDestroy, onFault } = this.#deps;
    const size = sizeOf(request.placement.size, image);
    return new Sandbox({
      assignment: assignmentOf(request, clock),
      facts: {
        vcpu: size.vcpu,
        memory_mib: size.memoryMib,
        disk_mib: size.diskMib,
        cpu_fraction: 1,
        rootfs: image.rootfs,
        host_port: 0,
        endpoint: '',
      },
      clock,
      onChange,
      beforeDestroy,
      onFault,
      from: { state: 'creating', revision: registry.find(request.vm_id)?.record().revision ?? 0 },
    });
  }

  async #bringUp(
    sandbox: Sandbox,
    request: PlaceSandboxRequest,
    image: ImageInfo,
  ): Promise<Sandbox> {
    const { clock, onCreated } = this.#deps;
    const start = clock.monotonic();
    const seconds = () => (clock.monotonic() - start) / 1000;
    try {
      await this.#makeVm(sandbox, request, image);
      onCreated(seconds(), 'created');
      return sandbox;
    } catch (error) {
      onCreated(seconds(), 'failed');
      const failure = sandbox.endReason === undefined ? toCreateError(error) : endedWhile(sandbox);
      if (isServiceError(failure, 'no_capacity')) this.#deps.registry.remove(sandbox);
      // The caller learns why the create failed; the reaper repeats a teardown that failed.
      await sandbox
        .end('boot_failed')
        .catch((fault) => this.#deps.onFault(fault, 'roll back a failed create'));
      throw failure;
    }
  }

  async #makeVm(sandbox: Sandbox, request: PlaceSandboxRequest, image: ImageInfo): Promise<void> {
    const { agents, mountWorkspace, onFault } = this.#deps;
    const { placement, env_vars: env, tenant_id: tenantId } = request;
    const signal = withDeadline(sandbox.signal, CREATE_MS);
    const agent =
      placement.agent === undefined ? undefined : agents.prepare(sandbox, request, signal);
    const hostname = hostnameOf(sandbox.id);
    const wanted = { image, size: placement.size, env, hostname, tenantId };
    try {
      await sandbox.bringUp({
        acquire: (labels) =>
          inSpan({ name: 'acquire VM', kind: 'internal' }, () =>
            acquire({ ...wanted, labels }, this.#deps, signal),
          ),
        mountWorkspace: (vm) => mountWorkspace(sandbox, vm),
        ...(agent === undefined
          ? {}
          : {
              startAgent: (vm) =>
                inSpan({ name: 'start agent', kind: 'internal' }, () => agent.start(vm, signal)),
            }),
      });
    } catch (error) {
      await agent?.abandon().catch((fault) => onFault(fault, 'abandon the start of an agent'));
      throw error;
    }
  }

  #rollBack(sandbox: Sandbox): void {
    const { onFault } = this.#deps;
    sandbox.end('boot_failed').catch((error) => onFault(error, 'roll back an abandoned create'));
  }
}

/** Whether an image carries the build of an agent that a placement names. */
function carries({ builds }: ImageInfo, agent: PlacedAgent | undefined): boolean {
  if (agent?.version === undefined) return true;
  return builds.some(({ kind, version }) => kind === agent.kind && version === agent.version);
}

/** The error for the callers of a create whose sandbox was ended before it completed. */
function endedWhile(sandbox: Sandbox): ServiceError {
  const failed: EndReason[] = ['boot_failed', 'worker_lost'];
  const { endReason, signal } = sandbox;
  if (signal.reason instanceof ServiceError && signal.reason.code !== 'sandbox_not_running') {
    return signal.reason;
  }
  return new ServiceError(
    endReason !== undefined && failed.includes(endReason) ? 'boot_failed' : 'sandbox_not_running',
  );
}
