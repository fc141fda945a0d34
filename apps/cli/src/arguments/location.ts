import { isId, pathProblem } from '@svc/contract';
import { ArgumentError } from './parsers.ts';

/** The location of a file: in a sandbox, on this machine, or standard input or output (`-`). */
export type Location =
  | { readonly kind: 'sandbox'; readonly id: string; readonly path: string }
  | { readonly kind: 'local'; readonly path: string }
  | { readonly kind: 'standard' };

/** Parses `-`, `vm_…:/absolute/path` or a local path. */
export function parseLocation(text: string): Location {
  if (text === '-') return { kind: 'standard' };
  const match = /^(vm_[^:/]*):(.*)$/s.exec(text);
  if (match === null) return { kind: 'local', path: text };
  const [, id = '', path = ''] = match;
  if (isId('sandbox', id) && pathProblem(path) === undefined) return { kind: 'sandbox', id, path };
  throw new ArgumentError(
    `"${text}" does not name a file in a sandbox`,
    'write the sandbox id, a colon and an absolute path without ".."',
    'vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b:/tmp/hello.txt',
  );
}
