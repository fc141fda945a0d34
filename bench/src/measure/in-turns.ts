/** Returns the duration of the work in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export interface Turns {
  readonly runs: number;
  /** Turns of both sides before the first that counts. Default: 1. */
  readonly warmUps?: number;
  /** Each function measures one turn and returns its value. */
  readonly ours: () => Promise<number>;
  readonly comparison: () => Promise<number>;
  readonly onTurn?: (done: number, runs: number) => void;
}

export interface TurnSamples {
  readonly ours: number[];
  readonly comparison: number[];
}

/** Measures two sides alternately, so that changes in the machine's load affect both alike. */
export async function inTurns(turns: Turns): Promise<TurnSamples> {
  const { runs, warmUps = 1, onTurn } = turns;
  const samples: TurnSamples = { ours: [], comparison: [] };
  for (let turn = -warmUps; turn < runs; turn += 1) {
    const ours = await turns.ours();
    const comparison = await turns.comparison();
    if (turn < 0) continue;
    samples.ours.push(ours);
    samples.comparison.push(comparison);
    onTurn?.(turn + 1, runs);
  }
  return samples;
}
