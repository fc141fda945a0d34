import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { VmShape } from '../vm-shape.ts';
import type { Image } from './image.ts';

/** Directory of an image's snapshot in one shape, for one machine monitor. It exists only when complete. */
export function snapshotDirectory(image: Image, key: string, { vcpu, memoryMib }: VmShape): string {
  return join(image.directory, 'snapshots', `${key}-${vcpu}x${memoryMib}`);
}

export async function snapshotExists(image: Image, key: string, shape: VmShape): Promise<boolean> {
  return access(join(snapshotDirectory(image, key, shape), 'state')).then(
    () => true,
    () => false,
  );
}
