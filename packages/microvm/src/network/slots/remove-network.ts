import { runEveryStep } from '@svc/service-kit/concurrency';
import { tearDownHost } from '../host/host-setup.ts';
import type { Instance } from '../instance/instance.ts';
import { existingSlots } from './existing-slots.ts';
import { describeSlot } from './network-slot.ts';
import { removeSlots } from './remove-slots.ts';

/** Removes every slot of an instance and the host's side of its network. Missing parts are not an error. */
export async function removeNetwork(instance: Instance): Promise<void> {
  await runEveryStep([
    {
      name: 'remove the network slots',
      run: async () => {
        const slots = await existingSlots(instance);
        await removeSlots(slots.map((index) => describeSlot(instance, index)));
      },
    },
    { name: "remove the host's side", run: () => tearDownHost(instance) },
  ]);
}
