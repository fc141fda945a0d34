import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { failsWith } from '../schema.ts';

/** One `@`, a local part, and a domain of at least two labels, without control characters or spaces. */
const EMAIL =
  /^[^\s\p{C}@<>()[\]\\,;:"]{1,64}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/u;

/** Checks form only; `normaliseEmail` decides whether it is an address. */
export const EmailField = Type.String({
  minLength: 1,
  maxLength: LIMITS.emailChars + 64,
  description: 'Email address.',
  examples: ['ada@example.com'],
  ...failsWith('email_invalid'),
});

/** The response of every route that sends a code. It is the same whether or not the account exists. */
export const MessageResponse = Type.Object({ message: Type.String() });
export type MessageResponse = Static<typeof MessageResponse>;

/** The address in its stored and compared form (trimmed, lower case), or undefined if it is not an address. */
export function normaliseEmail(email: string): string | undefined {
  const normal = email.trim().toLowerCase();
  return normal.length <= LIMITS.emailChars && EMAIL.test(normal) ? normal : undefined;
}
