/** `GET /v1/sandboxes/{id}/logs`. */

import { type Static, Type } from 'typebox';
import { ServiceError } from '../errors/service-error.ts';
import { LIMITS } from '../limits.ts';
import { failsWith } from '../schema.ts';

const Count = (description: string) =>
  Type.Integer({ minimum: 1, description, ...failsWith('log_count_invalid') });

export const LogsQuery = Type.Object({
  stream: Type.Optional(
    Type.Enum(['stderr', 'stdout', 'all'], {
      default: 'stderr',
      description: 'Only stderr is implemented.',
      ...failsWith('log_stream_unknown'),
    }),
  ),
  lines: Type.Optional(
    Count(
      `Trailing lines; default ${LIMITS.logLinesDefault}, clamped to ${LIMITS.logLinesMax}. Not together with bytes.`,
    ),
  ),
  bytes: Type.Optional(
    Count(`Trailing bytes, clamped to ${LIMITS.logBytesMax}. Not together with lines.`),
  ),
});
export type LogsQuery = Static<typeof LogsQuery>;

/** The part of the log to return: either trailing lines or trailing bytes. */
export type LogTail = { readonly lines: number } | { readonly bytes: number };

export const LogsResponse = Type.Object(
  {
    content: Type.String(),
    truncated: Type.Boolean({
      description:
        'Whether the log is longer than the content, or may be because only the part that was read before the loss of its worker is left.',
    }),
    total_bytes: Type.Integer({ description: 'Length of the whole log.' }),
  },
  { title: 'Logs' },
);
export type LogsResponse = Static<typeof LogsResponse>;

/**
 * The tail that a valid query requests, clamped to the limits.
 * @throws ServiceError `log_lines_and_bytes`, `log_stream_not_implemented`
 */
export function resolveLogsQuery(query: LogsQuery): LogTail {
  if (query.lines !== undefined && query.bytes !== undefined) {
    throw new ServiceError('log_lines_and_bytes');
  }
  if (query.stream !== undefined && query.stream !== 'stderr') {
    throw new ServiceError('log_stream_not_implemented');
  }
  if (query.bytes !== undefined) return { bytes: Math.min(query.bytes, LIMITS.logBytesMax) };
  return { lines: Math.min(query.lines ?? LIMITS.logLinesDefault, LIMITS.logLinesMax) };
}
