import { ArgumentError } from './argument-error.ts';

/** Collects repeated `NAME=value` options into one object. */
export function collectPair(
  text: string,
  collected: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const at = text.indexOf('=');
  if (at > 0) return { ...collected, [text.slice(0, at)]: text.slice(at + 1) };
  throw new ArgumentError(
    `"${text}" is not a name with a value`,
    'write NAME=value; repeat the option for more',
    '--env GREETING=hello',
  );
}
