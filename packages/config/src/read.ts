import { Value } from 'typebox/value';
import type { Variable } from './kind.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

type ValueOf<V> =
  V extends Variable<infer T> ? (V extends { fallback: string } ? T : T | undefined) : never;

/** The values of a table of variables. Those without a default may be undefined. */
export type ValuesOf<Table> = { readonly [Key in keyof Table]: ValueOf<Table[Key]> };

/** Reads every variable of a table. An invalid one adds to `problems` and has no value. */
export function readTable<const Table extends Record<string, Variable<unknown>>>(
  table: Table,
  environment: Environment,
  problems: string[],
): ValuesOf<Table> {
  const values = Object.entries(table).map(([key, variable]) => [
    key,
    readVariable(variable, environment, problems),
  ]);
  return Object.fromEntries(values) as ValuesOf<Table>;
}

function readVariable<T>(
  { name, kind, fallback }: Variable<T>,
  environment: Environment,
  problems: string[],
): T | undefined {
  const given = environment[name];
  const text = given === undefined || given === '' ? fallback : given;
  if (text === undefined) return undefined;
  const value = kind.convert(text);
  if (value !== undefined && Value.Check(kind.schema, value)) return value;
  const shown = kind.secret === true ? '' : `, but is ${JSON.stringify(text)}`;
  problems.push(`${name} must be ${kind.expects}${shown}`);
  return undefined;
}
