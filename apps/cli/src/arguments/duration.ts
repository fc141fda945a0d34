import { ArgumentError } from './argument-error.ts';

const SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600 };

/** A parser of durations such as `90`, `90s`, `15m` or `2h`, giving whole seconds of at least 1. */
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
