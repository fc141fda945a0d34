import type { Instance } from '../instance/instance.ts';
import { networkNames } from './remove-slots.ts';

/** Indexes of every slot of this instance of which a namespace or an interface exists. */
export async function existingSlots(instance: Instance): Promise<number[]> {
  const pattern = new RegExp(`^${instance.name}-(\\d+)$`);
  const names = [...(await networkNames())];
  const indexes = names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
  return indexes.sort((a, b) => a - b);
}
