import type { BareMachine } from '../bare/bare-machine.ts';
import type { BenchService } from '../service/bench-service.ts';
import type { BenchModels } from '../sessions/bench-models.ts';
import { type Summary, summarise } from './statistics.ts';

/** What a row works with. */
export interface RowContext {
  readonly service: BenchService;
  /** A scripted model that the service may call. */
  readonly models: BenchModels;
  readonly runs: number;
  /** A directory of this bench run, for files. */
  readonly scratch: string;
  /** Restores the same snapshot without the service; set up at the first call. */
  bareMachine(): Promise<BareMachine>;
  /** Shows how far the row is. */
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
  /** What is held against the bound. */
  readonly figure: { readonly text: string; readonly value: number };
  readonly bound: string;
  readonly ok: boolean;
  readonly notes: readonly string[];
}

/** Something the bench measures. */
export interface Row {
  readonly name: string;
  /** Idle sandboxes that the service keeps ready. Rows of one pool size share a service. */
  readonly pool: number;
  run(context: RowContext): Promise<RowResult[]>;
}

/** Two sides whose medians are compared. */
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

/** A side whose median must not be more, or not be less, than a bound times the other's. */
export interface RatioOptions extends ComparisonOptions {
  readonly atLeast?: number;
  /** Whether the figure is the comparison over ours, as in "so many times faster". */
  readonly inverse?: boolean;
}

/**
 * The result of a row that subtracts medians: ours must not be more than `atMost` above the other; without a bound
 * it is reported.
 */
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

/** The result of a row that compares medians. */
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
    bound: bounds.join(', '),
    ok: value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? 0),
    notes,
  };
}
