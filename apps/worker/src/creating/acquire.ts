import type { SandboxSize } from '@svc/contract';
import type { ImageInfo } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { VmLabels } from '../sandbox/labels.ts';
import { discard, type Pool, type PooledVm } from '../vms/pool/pool.ts';
import { isImageSize } from '../vms/sizes.ts';
import type { VmMaker } from '../vms/vm-maker.ts';

/** An idle VM that needs longer than this to accept its name is stale. */
const POOLED_HAND_OVER_MS = 10_000;

export interface AcquireDeps {
  readonly pool: Pool;
  readonly maker: VmMaker;
  readonly onFault: (error: unknown, action: string) => void;
}

export interface AcquireRequest {
  readonly image: ImageInfo;
  readonly size: SandboxSize;
  readonly env: Readonly<Record<string, string>>;
  readonly hostname: string;
  readonly tenantId: string;
  /** Written before anything else, to mark the VM as the sandbox's. */
  readonly labels: VmLabels;
}

/**
 * Provides the VM of a sandbox, with its labels, name and environment: takes one from the pool when the size is the
 * image's own, otherwise restores one. The caller owns it; a failure leaves nothing behind.
 */
export async function acquire(
  request: AcquireRequest,
  deps: AcquireDeps,
  signal: AbortSignal,
): Promise<PooledVm> {
  const { image, size, hostname, tenantId } = request;
  const pooled = isImageSize(size, image) ? deps.pool.take(image, tenantId) : undefined;
  if (pooled !== undefined) {
    const soon = withDeadline(signal, POOLED_HAND_OVER_MS);
    const failure = await handOver(pooled, request, deps, soon).catch((error) => {
      // A VM that went stale in the pool is no reason to fail: a new one is restored.
      signal.throwIfAborted();
      return error;
    });
    if (failure === undefined) return pooled;
  }
  const made = await deps.maker.makeWithEviction({ image, size, hostname, tenantId }, signal);
  await handOver(made, request, deps, signal);
  return made;
}

async function handOver(
  made: PooledVm,
  { labels, hostname, env, tenantId }: AcquireRequest,
  { onFault }: AcquireDeps,
  signal: AbortSignal,
): Promise<undefined> {
  try {
    // Before any data of the tenant goes in: after a crash, the VM must not be mistaken for an idle one.
    await made.vm.label(labels);
    await made.vm.personalize({ hostname, env: { ...env }, owner: tenantId }, signal);
    signal.throwIfAborted();
  } catch (error) {
    await discard(made).catch((fault) =>
      onFault(fault, 'discard a VM that could not be handed over'),
    );
    throw error;
  }
}

/** Turns a sandbox id into a host name: no underscores, at most 63 characters. */
export function hostnameOf(vmId: string): string {
  return vmId
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '');
}
