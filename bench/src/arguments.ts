import { parseArgs } from 'node:util';

/** What the person who runs the bench chose. */
export interface BenchArguments {
  /** Measurements of each side of a row. */
  readonly runs: number;
  /** Rows to run, by name; all of them when empty. */
  readonly only: readonly string[];
}

const DEFAULT_RUNS = 30;

/** Reads the command line. Throws a TypeError that says what is wrong with it. */
export function readArguments(args: readonly string[], rows: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      runs: { type: 'string', default: String(DEFAULT_RUNS) },
      only: { type: 'string', multiple: true, default: [] },
    },
  });
  const runs = Number(values.runs);
  if (!Number.isInteger(runs) || runs < 1) {
    throw new TypeError(`--runs is a whole number of at least 1, not "${values.runs}"`);
  }
  const only = values.only.flatMap((names) => names.split(','));
  const unknown = only.filter((name) => !rows.includes(name));
  if (unknown.length > 0) {
    throw new TypeError(`--only knows ${rows.join(', ')}; not ${unknown.join(', ')}`);
  }
  return { runs, only };
}
