import { type Static, USAGE_COUNTERS, UsageCounters, UsageSample } from '@svc/contract';
import { Type } from 'typebox';
import type { AgentUsage } from '../sandbox/usage-counter.ts';

/** A moment, by both clocks: the monotonic one is exact, but begins again when the machine boots. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
  readonly bootId: string;
}

const TakenSample = Type.Object({
  ...Type.Omit(UsageSample, ['vm_id', 'generation', 'age_ms']).properties,
  taken: Type.Object({ wall: Type.Number(), monotonic: Type.Number(), bootId: Type.String() }),
});
type TakenSample = Static<typeof TakenSample>;

/** What a later worker process needs to continue a meter. */
export const MeterState = Type.Object({
  version: Type.Literal(1),
  ...Type.Pick(UsageSample, ['vm_id', 'generation']).properties,
  /** The number of the last sample. */
  seq: Type.Integer({ minimum: 0 }),
  counters: UsageCounters,
  /** Samples that the control plane may not have, oldest first. */
  pending: Type.Array(TakenSample),
});
export type MeterState = Static<typeof MeterState>;

const HOUR_MS = 3_600_000;
const ZERO: UsageCounters = {
  cpu_ms: 0,
  wall_ms: 0,
  input_tokens: 0,
  output_tokens: 0,
  tool_calls: 0,
};

/**
 * The counters of one sandbox, and its samples that the control plane may not have yet. Counters never decrease.
 * Of pending samples, one per UTC hour is kept: a later one contains the earlier ones, and an hour never spans two days.
 */
export class Meter {
  readonly vmId: string;
  readonly generation: number;
  /** What earlier worker processes counted. */
  readonly #before: UsageCounters;
  #counters: UsageCounters;
  #sampled: UsageCounters;
  #seq: number;
  #pending: readonly TakenSample[];
  #savedSeq: number;
  #isSaved: boolean;

  /** @param state what an earlier process saved; a new meter has none */
  constructor(
    { vm_id, generation }: Pick<UsageSample, 'vm_id' | 'generation'>,
    state?: MeterState,
  ) {
    this.vmId = vm_id;
    this.generation = generation;
    this.#before = state?.counters ?? ZERO;
    this.#counters = this.#before;
    this.#seq = state?.seq ?? 0;
    this.#pending = state?.pending ?? [];
    // Without pending samples the control plane has the counters, or a repeated sample tells it.
    this.#sampled = this.#pending.at(-1) ?? ZERO;
    this.#savedSeq = this.#seq;
    this.#isSaved = state !== undefined;
  }

  /** Whether it has counted nothing that is not in a settled sample. */
  get isSettled(): boolean {
    return this.#pending.length === 0 && !this.#hasNews();
  }

  get isSaved(): boolean {
    return this.#isSaved;
  }

  /** Takes over what was measured: the times since the sandbox first ran, and the counts of this process. */
  update(
    times: Pick<UsageCounters, 'cpu_ms' | 'wall_ms'> | undefined,
    used: AgentUsage | undefined,
  ): void {
    const next: UsageCounters = {
      cpu_ms: Math.max(this.#counters.cpu_ms, times?.cpu_ms ?? 0),
      wall_ms: Math.max(this.#counters.wall_ms, times?.wall_ms ?? 0),
      input_tokens: this.#before.input_tokens + (used?.input_tokens ?? 0),
      output_tokens: this.#before.output_tokens + (used?.output_tokens ?? 0),
      tool_calls: this.#before.tool_calls + (used?.tool_calls ?? 0),
    };
    if (USAGE_COUNTERS.every((name) => next[name] === this.#counters[name])) return;
    this.#counters = next;
    this.#isSaved = false;
  }

  /** Takes a sample, if anything was counted since the last one. */
  sample(taken: Moment): void {
    if (!this.#hasNews()) return;
    this.#seq += 1;
    this.#sampled = this.#counters;
    const earlier = this.#pending.filter((one) => hourOf(one) !== hourOf({ taken }));
    this.#pending = [...earlier, { seq: this.#seq, ...this.#counters, taken }];
    this.#isSaved = false;
  }

  /**
   * The samples to send, with their ages. One that is not saved is not sent: after a crash, another one could get its
   * number.
   */
  due(now: Moment): UsageSample[] {
    const { vmId: vm_id, generation } = this;
    return this.#pending
      .filter(({ seq }) => seq <= this.#savedSeq)
      .map(({ taken, ...sample }) => ({ vm_id, generation, ...sample, age_ms: ageOf(taken, now) }));
  }

  /** The control plane has, or refuses, all samples up to this one. */
  settle(seq: number): void {
    this.#pending = this.#pending.filter((sample) => sample.seq > seq);
  }

  /** What to save. Call {@link saved} with it once it is on disk. */
  state(): MeterState {
    const { vmId: vm_id, generation } = this;
    const pending = [...this.#pending];
    return { version: 1, vm_id, generation, seq: this.#seq, counters: this.#counters, pending };
  }

  saved({ seq, counters }: MeterState): void {
    this.#savedSeq = seq;
    this.#isSaved = seq === this.#seq && counters === this.#counters;
  }

  #hasNews(): boolean {
    return USAGE_COUNTERS.some((name) => this.#counters[name] !== this.#sampled[name]);
  }
}

function hourOf({ taken }: Pick<TakenSample, 'taken'>): number {
  return Math.floor(taken.wall / HOUR_MS);
}

/** Milliseconds since a sample was taken. Only after the machine has booted does it depend on the wall clock. */
function ageOf(taken: Moment, now: Moment): number {
  const ms = taken.bootId === now.bootId ? now.monotonic - taken.monotonic : now.wall - taken.wall;
  return Math.max(0, Math.round(ms));
}
