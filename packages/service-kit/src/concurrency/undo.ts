/** One step of a cleanup. `name` completes the sentence "cannot …" in the error of a step that fails. */
export interface CleanupStep {
  readonly name: string;
  readonly run: () => unknown;
}

interface Failure {
  readonly name: string;
  readonly error: unknown;
}

/** Steps of a cleanup failed. `errors` holds their errors, one for each step; the other steps have been taken. */
export class CleanupError extends AggregateError {
  override readonly name = 'CleanupError';
}

/**
 * Takes every step in order, each after the one before it has settled, whether or not that failed.
 * @throws CleanupError when steps failed
 */
export async function runEveryStep(steps: readonly CleanupStep[]): Promise<void> {
  const failures: Failure[] = [];
  for (const { name, run } of steps) {
    try {
      await run();
    } catch (error) {
      failures.push({ name, error });
    }
  }
  report(failures);
}

/**
 * Takes every step at the same time, and settles when all have.
 * @throws CleanupError when steps failed
 */
export async function runStepsTogether(steps: readonly CleanupStep[]): Promise<void> {
  const failures: Failure[] = [];
  const take = async ({ name, run }: CleanupStep) => {
    try {
      await run();
    } catch (error) {
      failures.push({ name, error });
    }
  };
  await Promise.all(steps.map(take));
  report(failures);
}

/** The steps that undo what has been done so far. */
export class UndoList {
  readonly #steps: CleanupStep[] = [];

  /** Adds a step, which is taken before those already in the list. */
  add(name: string, run: () => unknown): void {
    this.#steps.unshift({ name, run });
  }

  /** Takes every step, the newest first, whether or not another fails. @throws CleanupError when steps failed */
  async run(): Promise<void> {
    await runEveryStep(this.#steps.splice(0));
  }
}

function report(failures: readonly Failure[]): void {
  if (failures.length === 0) return;
  const sentences = failures.map(
    ({ name, error }) =>
      `cannot ${name}: ${error instanceof Error ? error.message : String(error)}`,
  );
  throw new CleanupError(
    failures.map(({ error }) => error),
    sentences.join('; '),
  );
}
