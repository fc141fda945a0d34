import { ArgumentError } from './parsers.ts';

/** Parses an amount of US dollars such as `20` or `7.50` into cents. */
export function parseDollars(text: string): number {
  const [, whole, cents = '0'] = /^(\d{1,7})(?:\.(\d\d))?$/.exec(text) ?? [];
  if (whole !== undefined) return Number(whole) * 100 + Number(cents);
  throw new ArgumentError(`"${text}" is not an amount`, 'use US dollars', '7.50');
}
