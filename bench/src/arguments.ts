import { parseArgs } from 'node:util';

/** Options of the bench. */
export interface BenchArguments {
  /** Number of measurements of each side of a row. */
  readonly runs: number;
  /** Names of the rows to run; all rows when empty. */
  readonly only: readonly string[];
}

const DEFAULT_RUNS = 30;

/** Parses the command line. @throws TypeError that names the invalid option */
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
    throw new TypeError(`--runs must be an integer of at least 1, not "${values.runs}"`);
  }
  const only = values.only.flatMap((names) => names.split(','));
  const unknown = only.filter((name) => !rows.includes(name));
  if (unknown.length > 0) {
    throw new TypeError(`unknown rows: ${unknown.join(', ')}; --only accepts ${rows.join(', ')}`);
  }
  return { runs, only };
}
