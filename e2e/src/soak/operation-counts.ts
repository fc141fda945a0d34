const SHOWN_FAILURES = 20;

/** Counts the operations of the virtual users by outcome. */
export class OperationCounts {
  readonly done = new Map<string, number>();
  /** Failed because something had been killed. */
  readonly refused = new Map<string, number>();
  /** Failures without an explanation. */
  readonly failures: string[] = [];

  /** Runs one operation. An error counts as a failure unless it is excused. */
  async count(
    name: string,
    operation: () => Promise<unknown>,
    isExcused: (error: unknown) => boolean,
  ): Promise<void> {
    try {
      await operation();
      increment(this.done, name);
    } catch (error) {
      if (isExcused(error)) increment(this.refused, name);
      else if (this.failures.length < SHOWN_FAILURES)
        this.failures.push(`${name}: ${describe(error)}`);
    }
  }

  toString(): string {
    const list = (counts: ReadonlyMap<string, number>) =>
      [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';
    return `done: ${list(this.done)}\nrefused after a kill: ${list(this.refused)}\nfailures: ${this.failures.length}`;
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
