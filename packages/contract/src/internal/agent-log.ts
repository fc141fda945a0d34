import { type Static, Type } from 'typebox';

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
