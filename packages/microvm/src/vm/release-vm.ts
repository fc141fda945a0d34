import { runEveryStep } from '@svc/service-kit/concurrency';
import type { NetworkSlot } from '../network/index.ts';
import type { HostResources } from '../resources/host-resources.ts';

/** Releases the resources of a VM, whose process has ended. Idempotent. @throws CleanupError */
export async function releaseVm(
  { jail, slots }: Pick<HostResources, 'jail' | 'slots'>,
  id: string,
  slot: NetworkSlot,
): Promise<void> {
  await runEveryStep([
    { name: 'remove the directory', run: () => jail.remove(id) },
    { name: 'release the network slot', run: () => slots.release(slot) },
  ]);
}
