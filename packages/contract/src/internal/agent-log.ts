import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { LogsQuery } from '../sandboxes/logs.ts';

/**
 * `PUT /internal/v1/sandboxes/{vm_id}/log?total_bytes=N` of the control plane: the end of the log of an agent that has
 * exited or whose sandbox ends, at most `LIMITS.logBytesMax` bytes as `application/octet-stream`. Replaces an earlier
 * one. 404 `sandbox_not_found` unless the sandbox has an agent, is or was on this worker, and still has a record.
 */
export const AgentLogQuery = Type.Object({
  total_bytes: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Length of the whole log.',
  }),
});
export type AgentLogQuery = Static<typeof AgentLogQuery>;

/** `GET /internal/v1/sandboxes/{vm_id}/logs` of the worker: the public query, and what the control plane has already. */
export const WorkerLogsQuery = Type.Object({
  ...LogsQuery.properties,
  known_bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The answer leaves out nothing behind this byte, as far as its limit allows.',
    }),
  ),
});
export type WorkerLogsQuery = Static<typeof WorkerLogsQuery>;

/** The end of an agent's log, which contains at least the tail that was asked for. */
export const WorkerLog = Type.Object({
  end: Type.String({
    pattern: '^[A-Za-z0-9+/]*={0,2}$',
    maxLength: Math.ceil(LIMITS.logBytesMax / 3) * 4,
    description: 'The last bytes of the log, in base64, since an agent may write anything.',
  }),
  total_bytes: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Length of the whole log.',
  }),
});
export type WorkerLog = Static<typeof WorkerLog>;
