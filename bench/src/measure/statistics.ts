/** A summary of repeated measurements. */
export interface Summary {
  readonly count: number;
  readonly mean: number;
  readonly median: number;
  readonly p95: number;
  readonly p99: number;
  readonly least: number;
  readonly most: number;
}

/** Summarises at least one measurement. */
export function summarise(samples: readonly number[]): Summary {
  const sorted = [...samples].sort((a, b) => a - b);
  return {
    count: sorted.length,
    mean: sorted.reduce((sum, sample) => sum + sample, 0) / sorted.length,
    median: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    least: quantile(sorted, 0),
    most: quantile(sorted, 1),
  };
}

/** The quantile by linear interpolation between the two nearest measurements. */
function quantile(sorted: readonly number[], share: number): number {
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)];
  const above = sorted[Math.ceil(position)];
  if (below === undefined || above === undefined) throw new RangeError('there are no measurements');
  return below + (above - below) * (position - Math.floor(position));
}
