import {
  LIMITS,
  USAGE_COUNTERS,
  type UsageCounters,
  type UsageRefusal,
  type UsageSample,
} from '@svc/contract';

/** The facts about a sandbox that limit what it can have used. */
export interface MeteredSandbox {
  readonly vcpu: number | null;
  /** Milliseconds for which its VM can have run since it was placed on its worker, by the database's clock. */
  readonly placed_ms: number;
}

/** The last accepted sample of a sandbox. */
export type Meter = Pick<UsageSample, 'seq'> & UsageCounters;

/** Tolerance for clocks that run at different speeds, and for the time that a statement waits. */
const SLACK_MS = 60_000;
/** Threads of a VM's process beside those of its virtual CPUs. */
const MORE_THREADS = 4;
/** Far more than any model or agent can reach. */
const TOKENS_PER_MS = 1_000;
const TOOL_CALLS_PER_MS = 1;

/** Whether to accept a sample: its worker may be faulty, or lie. */
export function judge(
  sample: UsageSample,
  meter: Meter,
  sandbox: MeteredSandbox,
): 'accepted' | 'known' | UsageRefusal {
  if (sample.seq <= meter.seq) return 'known';
  if (USAGE_COUNTERS.some((name) => sample[name] < meter[name])) return 'decreasing';
  const ms = sandbox.placed_ms + SLACK_MS;
  const vcpus = Math.min(sandbox.vcpu ?? LIMITS.vcpuMax, LIMITS.vcpuMax);
  const most: UsageCounters = {
    cpu_ms: ms * (vcpus + MORE_THREADS),
    wall_ms: ms,
    input_tokens: ms * TOKENS_PER_MS,
    output_tokens: ms * TOKENS_PER_MS,
    tool_calls: ms * TOOL_CALLS_PER_MS,
  };
  return USAGE_COUNTERS.some((name) => sample[name] > most[name]) ? 'implausible' : 'accepted';
}
