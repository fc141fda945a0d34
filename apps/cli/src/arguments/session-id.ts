import { ArgumentError } from './argument-error.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A parser of session ids. */
export function parseSessionId(text: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new ArgumentError(
    `"${text}" is not a session id`,
    'copy an id from `svc session list`',
    '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
  );
}

/** The same for an argument that takes several. */
export function collectSessionId(text: string, collected: readonly string[] = []): string[] {
  return [...collected, parseSessionId(text)];
}
