import { isId } from '@svc/contract';
import { ArgumentError } from './parsers.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function parseSandboxId(text: string): string {
  if (isId('sandbox', text)) return text;
  throw new ArgumentError(
    `"${text}" is not a sandbox id`,
    'copy an id from `svc sandbox list`',
    'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b',
  );
}

/** Collects the sandbox ids of a variadic argument. */
export function collectSandboxId(text: string, collected: readonly string[] = []): string[] {
  return [...collected, parseSandboxId(text)];
}

/** Parses a session id, a UUID, into lower case. */
export function parseSessionId(text: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new ArgumentError(
    `"${text}" is not a session id`,
    'copy an id from `svc session list`',
    '019aa1b2-c3d4-7e8f-9a0b-1c2d3e4f5a6b',
  );
}

/** Collects the session ids of a variadic argument. */
export function collectSessionId(text: string, collected: readonly string[] = []): string[] {
  return [...collected, parseSessionId(text)];
}
