import type { ObjectRange } from '@svc/object-store';

/** Positions beyond this are beyond the end of every object. */
const MOST = Number.MAX_SAFE_INTEGER;

/**
 * The range of a Range header. Undefined for several ranges, another unit or a malformed header: the whole object is the
 * answer then. https://www.rfc-editor.org/rfc/rfc9110#section-14.2
 */
export function parseRange(header: string | undefined): ObjectRange | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? [];
  if (first === '') return last === '' ? undefined : { suffix: positionOf(last) };
  if (last === '') return { first: positionOf(first) };
  const range = { first: positionOf(first), last: positionOf(last) };
  return range.last < range.first ? undefined : range;
}

function positionOf(digits: string): number {
  return Math.min(Number(digits), MOST);
}
