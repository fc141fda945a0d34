/**
 * `POST /internal/v1/usage` of the control plane: what the sandboxes of a worker have used.
 *
 * A worker reports totals since the start of a sandbox, never differences, so a lost, repeated or reordered report
 * changes no sum. The control plane stores the difference to the last accepted totals.
 */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { Count, ShortText, Total } from './bounds.ts';
import { OpenEnum } from './open-enum.ts';

/** What a sandbox has used since it first ran. */
export const UsageCounters = Type.Object({
  /** CPU time of the VM's process, in milliseconds, by the operating system of the worker. */
  cpu_ms: Total,
  /** Time for which the sandbox has existed, paused or not, in milliseconds. */
  wall_ms: Total,
  /** All input tokens that the model's vendor reported, including cached ones. */
  input_tokens: Total,
  output_tokens: Total,
  /** Tools that the agent called. */
  tool_calls: Total,
});
export type UsageCounters = Static<typeof UsageCounters>;

export const USAGE_COUNTERS = Object.keys(UsageCounters.properties) as (keyof UsageCounters)[];

/** The counters of one sandbox at one moment. Its key is `vm_id`, `generation` and `seq`. */
export const UsageSample = Type.Object({
  vm_id: ShortText(1),
  generation: Count(),
  /** Increases with every sample of a sandbox, also across restarts of its worker. */
  seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  /** How long ago the sample was taken, in milliseconds. An age does not depend on the clock of the worker. */
  age_ms: Total,
  ...UsageCounters.properties,
});
export type UsageSample = Static<typeof UsageSample>;

/** Why a sample was refused: a worker must not send it again. */
export const USAGE_REFUSALS = [
  /** It does not have the form of a sample, or has a value out of range. */
  'invalid',
  /** No sandbox with this id and generation is or was on this worker. */
  'unknown_sandbox',
  /** A counter is lower than in an earlier sample. */
  'decreasing',
  /** A counter is higher than the time since the sandbox was placed allows. */
  'implausible',
] as const;
export type UsageRefusal = (typeof USAGE_REFUSALS)[number];

/** Each sample is judged on its own, so that a malformed one does not hold up the others. */
export const ReportUsageRequest = Type.Object({
  samples: Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.usageBatch }),
});
export type ReportUsageRequest = Static<typeof ReportUsageRequest>;

/** Every sample of the request is settled: accepted, known already, or refused. */
export const ReportUsageResponse = Type.Object({
  accepted: Type.Integer({ minimum: 0 }),
  /** Samples that are not newer than the last accepted one of their sandbox. */
  known: Type.Integer({ minimum: 0 }),
  refused: Type.Array(
    Type.Object({
      /** Position in the request. */
      index: Type.Integer({ minimum: 0 }),
      reason: OpenEnum(USAGE_REFUSALS),
    }),
  ),
});
export type ReportUsageResponse = Static<typeof ReportUsageResponse>;
