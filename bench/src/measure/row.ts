import type { Template } from '@svc/contract';
import type { BareMachine } from '../bare/bare-machine.ts';
import type { BenchService } from '../service/bench-service.ts';
import type { BenchModels } from '../sessions/bench-models.ts';
import { type Summary, summarise } from './statistics.ts';

/** The environment of a row. */
export interface RowContext {
  readonly service: BenchService;
  /** A scripted model that the service may call. */
  readonly models: BenchModels;
  readonly runs: number;
  /** A directory for temporary files. */
  readonly scratch: string;
  /** The bare machine that restores the same snapshot without the service. The first call sets it up. */
  bareMachine(): Promise<BareMachine>;
  /** Displays the progress of the row. */
  progress(text: string): void;
}

/** One line of the table. */
export interface RowResult {
  readonly name: string;
  readonly what: string;
  readonly against: string;
  readonly unit: string;
  readonly ours: Summary;
  readonly comparison?: Summary;
  /** The value that is compared with the bound. */
  readonly figure: { readonly text: string; readonly value: number };
  readonly bound: string;
  readonly ok: boolean;
  readonly notes: readonly string[];
}

/** A measurement of the bench. */
export interface Row {
  readonly name: string;
  /** Idle VMs of each template in the service's pool. Rows with the same pool and templates share a service. */
  readonly pool: number;
  /** The templates of the service. Default: `standard`. */
  readonly templates?: readonly Template[];
  run(context: RowContext): Promise<RowResult[]>;
}

/** Measurements of two sides whose medians are compared. */
interface ComparisonOptions {
  readonly name: string;
  readonly what: string;
  readonly against: string;
  readonly unit: string;
  readonly ours: readonly number[];
  readonly comparison: readonly number[];
  readonly atMost?: number;
  readonly notes?: readonly string[];
}

/** A comparison by the ratio of the medians, with an upper or a lower bound. */
export interface RatioOptions extends ComparisonOptions {
  readonly atLeast?: number;
  /** Divide the comparison's median by ours, so that the figure is a speed-up. */
  readonly inverse?: boolean;
}

/** The result of a row that subtracts the medians. Our median may exceed the other by `atMost`; without it there is no bound. */
export function differenceResult(options: ComparisonOptions): RowResult {
  const { name, what, against, unit, atMost, notes = [] } = options;
  const ours = summarise(options.ours);
  const comparison = summarise(options.comparison);
  const value = ours.median - comparison.median;
  return {
    name,
    what,
    against,
    unit,
    ours,
    comparison,
    figure: { text: `+${value.toFixed(value < 10 ? 2 : 0)} ${unit}`, value },
    bound: atMost === undefined ? 'reported' : `≤ ${atMost} ${unit}`,
    ok: value <= (atMost ?? Number.POSITIVE_INFINITY),
    notes,
  };
}

/** The result of a row that divides the medians. */
export function ratioResult(options: RatioOptions): RowResult {
  const { name, what, against, unit, atMost, atLeast, inverse = false, notes = [] } = options;
  const ours = summarise(options.ours);
  const comparison = summarise(options.comparison);
  const value = inverse ? comparison.median / ours.median : ours.median / comparison.median;
  const bounds = [
    ...(atMost === undefined ? [] : [`≤ ${atMost.toFixed(2)} ×`]),
    ...(atLeast === undefined ? [] : [`≥ ${atLeast.toFixed(2)} ×`]),
  ];
  return {
    name,
    what,
    against,
    unit,
    ours,
    comparison,
    figure: { text: `${value.toFixed(inverse ? 2 : 3)} ×`, value },
    bound: bounds.join(', ') || 'reported',
    ok: value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? 0),
    notes,
  };
}
