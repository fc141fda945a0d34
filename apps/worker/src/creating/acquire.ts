import { ServiceError } from '@svc/contract';
import type { ImageInfo } from '@svc/microvm';
import { withDeadline } from '@svc/service-kit/concurrency';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { discard, type Pool, type PooledVm } from '../vms/pool/pool.ts';
import { isImageSize, type Size } from '../vms/sizes.ts';
import type { VmMaker } from '../vms/vm-maker.ts';

/** An idle VM that takes longer to take its name is of no use. */
const POOLED_HAND_OVER_MS = 10_000;

export interface AcquireDeps {
  readonly pool: Pool;
  readonly maker: VmMaker;
}

export interface AcquireRequest {
  readonly image: ImageInfo;
  readonly size: Size;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A VM that belongs to this sandbox, with its name and environment: from the pool when the size is the
 * image's own, else restored. The VM is the caller's; on failure nothing is left behind.
 */
export async function acquire(
  sandbox: Sandbox,
  request: AcquireRequest,
  deps: AcquireDeps,
  signal: AbortSignal,
): Promise<PooledVm> {
  const { image, size } = request;
  const imageSize = isImageSize(size, image);
  const pooled = imageSize ? deps.pool.take(image) : undefined;
  if (pooled !== undefined) {
    const soon = withDeadline(signal, POOLED_HAND_OVER_MS);
    const handedOver = await handOver(sandbox, pooled, request, soon).catch((error) => {
      // A VM that went stale in the pool is no reason to fail: a fresh one is made.
      signal.throwIfAborted();
      return error;
    });
    if (handedOver === undefined) return pooled;
  }
  const made = await deps.maker.makeAtAllCost(
    { template: image.template, size, imageSize, hostname: hostnameOf(sandbox.id) },
    signal,
  );
  await handOver(sandbox, made, request, signal);
  return made;
}

async function handOver(
  sandbox: Sandbox,
  made: PooledVm,
  request: AcquireRequest,
  signal: AbortSignal,
): Promise<undefined> {
  try {
    // Before anything of the tenant's goes in: after a crash this VM must never be taken for an idle one.
    await made.vm.label(sandbox.labels('configuring'));
    await made.vm.personalize(
      { hostname: hostnameOf(sandbox.id), env: { ...request.env } },
      signal,
    );
    signal.throwIfAborted();
    if (sandbox.endReason !== undefined) throw new ServiceError('sandbox_not_running');
  } catch (error) {
    await discard(made);
    throw error;
  }
}

/** A host name made of a sandbox id: no underscore, at most 63 characters. */
export function hostnameOf(vmId: string): string {
  return vmId
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, '');
}
