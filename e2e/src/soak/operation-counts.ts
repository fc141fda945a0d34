import { isEnded } from './virtual-user.ts';

const SHOWN_FAILURES = 20;

/** Counts what the actors did and how it went. */
export class OperationCounts {
  readonly done = new Map<string, number>();
  /** Refused, because the sandbox had been killed. */
  readonly refused = new Map<string, number>();
  /** What nothing explains. */
  readonly failures: string[] = [];

  /** Runs one action; what it throws is counted as refused when it is right to be, else as a failure. */
  async count(
    name: string,
    action: () => Promise<unknown>,
    mayBeRefused: () => boolean,
  ): Promise<void> {
    try {
      await action();
      add(this.done, name);
    } catch (error) {
      if (mayBeRefused() && isEnded(error)) add(this.refused, name);
      else if (this.failures.length < SHOWN_FAILURES)
        this.failures.push(`${name}: ${words(error)}`);
    }
  }

  toString(): string {
    const list = (counts: ReadonlyMap<string, number>) =>
      [...counts].map(([name, count]) => `${name} ${count}`).join(', ') || 'none';
    return `done: ${list(this.done)}\nrefused after a kill: ${list(this.refused)}\nfailures: ${this.failures.length}`;
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function words(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
