import type { ObjectRange } from '../object-store.ts';

/** The Range header for a range. */
export function rangeHeaderOf(range: ObjectRange): string {
  if ('suffix' in range) return `bytes=-${range.suffix}`;
  return `bytes=${range.first}-${range.last ?? ''}`;
}

/** The position and the object's size in a Content-Range header; undefined without one. */
export function startOfRange(header = ''): { first: number; size: number } | undefined {
  const [, first, size] = /^bytes (\d+)-\d+\/(\d+)$/.exec(header) ?? [];
  return first === undefined ? undefined : { first: Number(first), size: Number(size) };
}
