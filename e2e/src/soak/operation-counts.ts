import { SvcError } from '@svc/sdk';

const SHOWN_FAILURES = 20;

/** Counts the operations of the virtual users by outcome. */
export class OperationCounts {
  readonly done = new Map<string, number>();
  /** Refused because the sandbox's VM had been killed. */
  readonly refused = new Map<string, number>();
  /** Failures without an explanation. */
  readonly failures: string[] = [];

  /** Runs one operation. An error counts as a refusal if the operation may be refused, otherwise as a failure. */
  async count(
    name: string,
    operation: () => Promise<unknown>,
    mayBeRefused: () => boolean,
  ): Promise<void> {
    try {
      await operation();
      increment(this.done, name);
    } catch (error) {
      if (mayBeRefused() && isEnded(error)) increment(this.refused, name);
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

/** Whether a call was refused because the sandbox has ended. */
function isEnded(error: unknown): boolean {
  return (
    error instanceof SvcError &&
    ['sandbox_not_running', 'sandbox_not_found', 'guest_unresponsive'].includes(error.code)
  );
}
