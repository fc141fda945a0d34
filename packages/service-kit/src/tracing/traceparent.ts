import type { TraceContext } from './tracing.ts';

/** https://www.w3.org/TR/trace-context/#traceparent-header */
export const TRACEPARENT_HEADER = 'traceparent';

/** Version, trace id, parent id and flags. Versions above 00 may add fields behind a dash; ff is invalid. */
const FORMAT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-|$)/;
const MAX_CHARS = 128;
const SAMPLED = 1;

/** The position that a header names; undefined if it is absent, repeated or malformed. */
export function parseTraceparent(header: string | string[] | undefined): TraceContext | undefined {
  if (typeof header !== 'string' || header.length > MAX_CHARS) return undefined;
  const [, traceId, spanId, flags = '', more] = FORMAT.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  if (more === '-' && header.startsWith('00')) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
}

/** The header by which the receiver of a call continues the trace. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
