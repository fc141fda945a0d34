import type { ObjectRange } from './object-store.ts';
import { ObjectStoreError } from './object-store-error.ts';

/**
 * The position and length of a range in an object of `size` bytes.
 * @throws ObjectStoreError `object_range_invalid` when it has no byte
 */
export function locateRange(
  range: ObjectRange | undefined,
  size: number,
): { first: number; length: number } {
  if (range === undefined) return { first: 0, length: size };
  const first = 'suffix' in range ? Math.max(0, size - range.suffix) : range.first;
  const last = 'suffix' in range ? size - 1 : Math.min(range.last ?? size - 1, size - 1);
  if (first >= size || last < first) {
    throw new ObjectStoreError('object_range_invalid', 'the range has no byte of the object');
  }
  return { first, length: last - first + 1 };
}
