import { type TSchemaOptions, Type } from 'typebox';

/** A date of the UTC calendar, `YYYY-MM-DD`. One that does not exist is invalid. */
export const Day = (options: TSchemaOptions = {}) =>
  Type.String({
    ...options,
    format: 'date',
    pattern: '^[12]\\d{3}-\\d{2}-\\d{2}$',
    examples: ['2026-11-21'],
  });

const DAY_MS = 86_400_000;

/** The UTC date of a time in milliseconds since the epoch. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** The date that many days later; earlier when negative. */
export function addDays(day: string, days: number): string {
  return dayOf(Date.parse(day) + days * DAY_MS);
}

/** The number of days from one date until another. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / DAY_MS;
}
