import { join } from 'node:path';
import type { VmShape } from '../vm-shape.ts';
import type { Image } from './image.ts';
import { markUsed } from './storage/last-used.ts';

/** Directory of an image's snapshot in one shape, for one machine monitor. It exists only when complete. */
export function snapshotDirectory(image: Image, key: string, { vcpu, memoryMib }: VmShape): string {
  return join(image.directory, 'snapshots', `${key}-${vcpu}x${memoryMib}`);
}

/** Whether this machine has a snapshot. If so, it is marked as used, and not pruned before it has been restored. */
export function findSnapshot(image: Image, key: string, shape: VmShape): Promise<boolean> {
  return markUsed(snapshotDirectory(image, key, shape));
}
