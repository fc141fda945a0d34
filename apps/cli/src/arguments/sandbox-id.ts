import { isId } from '@svc/contract';
import { ArgumentError } from './argument-error.ts';

/** A parser of sandbox ids. */
export function parseSandboxId(text: string): string {
  if (isId('sandbox', text)) return text;
  throw new ArgumentError(
    `"${text}" is not a sandbox id`,
    'copy an id from `svc sandbox list`',
    'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b',
  );
}

/** The same for an argument that takes several. */
export function collectSandboxId(text: string, collected: readonly string[] = []): string[] {
  return [...collected, parseSandboxId(text)];
}
