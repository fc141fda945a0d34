import { dayOf, normaliseEmail } from '@svc/contract';
import { InvalidArgumentError } from 'commander';

/** An invalid argument. The message states the problem, the expected form and an example. */
export class ArgumentError extends InvalidArgumentError {
  constructor(problem: string, hint: string, example: string) {
    super(`${problem}\n  hint:    ${hint}\n  example: ${example}`);
  }
}

/** Returns a parser for whole numbers from `min` to `max`. */
export function integerBetween(
  min: number,
  max: number,
  example: string,
): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new ArgumentError(
      `"${text}" is not a whole number in range`,
      `use a whole number from ${min} to ${max}`,
      example,
    );
  };
}

const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600 };

/** Parses a duration such as `90`, `90s`, `15m` or `2h` into whole seconds, at least 1. */
export function parseDuration(text: string): number {
  const match = /^(\d+)([smh]?)$/.exec(text);
  const seconds = Number(match?.[1]) * (SECONDS[match?.[2] ?? ''] ?? Number.NaN);
  if (Number.isSafeInteger(seconds) && seconds >= 1) return seconds;
  throw new ArgumentError(
    `"${text}" is not a duration`,
    'use seconds, or a number with s, m or h',
    '--idle-timeout 15m',
  );
}

/** Parses and normalises an email address. */
export function parseEmail(text: string): string {
  const email = normaliseEmail(text);
  if (email !== undefined) return email;
  throw new ArgumentError(
    `"${text}" is not an email address`,
    'use the address that receives the one-time code',
    'ada@example.com',
  );
}

/** Collects the values of a repeatable option into a list. */
export function collect(text: string, collected: readonly string[] = []): string[] {
  return [...collected, text];
}

/** Collects the values of a repeatable `NAME=value` option into an object. */
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

/** Parses a date of the calendar such as `2026-11-21`. */
export function parseDay(text: string): string {
  const time = /^[12]\d{3}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  // A day that the month does not have becomes one of the next month.
  if (!Number.isNaN(time) && dayOf(time) === text) return text;
  throw new ArgumentError(`"${text}" is not a date`, 'use YYYY-MM-DD', '--from 2026-11-01');
}
