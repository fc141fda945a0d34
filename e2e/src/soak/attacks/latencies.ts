/** The times of one kind of operation, in milliseconds. */
export class Latencies {
  readonly #times: number[] = [];

  /** Runs an operation and notes its time, unless it fails. */
  async time<T>(operation: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    const result = await operation();
    this.#times.push(performance.now() - begun);
    return result;
  }

  get count(): number {
    return this.#times.length;
  }

  /** The time that this share of the operations did not exceed; not a number without operations. */
  percentile(share: number): number {
    const sorted = this.#times.toSorted((a, b) => a - b);
    return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
  }
}

/** A line that compares the times of an operation without and with an attack. */
export function comparison(name: string, before: Latencies, during: Latencies): string {
  const figures = [0.5, 0.95].map((share) => {
    const [alone, attacked] = [before.percentile(share), during.percentile(share)];
    const ratio = (attacked / alone).toFixed(2);
    return `p${share * 100} ${alone.toFixed(0)} → ${attacked.toFixed(0)} ms (${ratio} ×)`;
  });
  return `${name}: ${figures.join(', ')}; ${before.count} and ${during.count} samples`;
}
