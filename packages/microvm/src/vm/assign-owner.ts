import type { HostResources } from '../resources/host-resources.ts';
import type { VmProcess } from '../vmm/vmm.ts';

/** A function that has a VM share the processor with the other VMs of its owner. A failure is logged: the VM works without. */
export function assigner(
  { jail, logger }: Pick<HostResources, 'jail' | 'logger'>,
  id: string,
  { identity }: Pick<VmProcess, 'identity'>,
): (owner: string) => void {
  return (owner) => {
    jail.assign(id, owner, identity.pid).catch((error: unknown) => {
      logger.warn(
        { err: error, vm: id },
        'a VM does not share the processor with those of its owner',
      );
    });
  };
}
