import { normaliseEmail } from '@svc/contract';
import { ArgumentError } from './argument-error.ts';

/** A parser of email addresses. */
export function parseEmail(text: string): string {
  const email = normaliseEmail(text);
  if (email !== undefined) return email;
  throw new ArgumentError(
    `"${text}" is not an email address`,
    'use the address that the code can be mailed to',
    'ada@example.com',
  );
}
