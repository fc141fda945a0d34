/** The rules for file paths in a sandbox. */

import type { ErrorCode } from './errors/catalogue.ts';
import { ServiceError } from './errors/service-error.ts';
import { LIMITS } from './limits.ts';

export type PathProblem = Extract<
  ErrorCode,
  'path_required' | 'path_not_absolute' | 'path_traversal' | 'invalid_path'
>;

const utf8 = new TextEncoder();

/**
 * The rule that a URL-decoded path breaks, or undefined when it is acceptable:
 * absolute, no `..` component, no NUL, at most 4096 bytes, and 255 bytes per component.
 * Nothing decodes a path again, so escapes such as `%2e` are part of a name.
 */
export function pathProblem(path: string): PathProblem | undefined {
  if (path === '') return 'path_required';
  if (!path.startsWith('/')) return 'path_not_absolute';
  // A string that is not well-formed UTF-16 has no UTF-8 form and cannot name a file.
  if (byteLength(path) > LIMITS.pathBytes || !path.isWellFormed()) return 'invalid_path';
  const components = path.split('/');
  if (components.includes('..')) return 'path_traversal';
  const isTooLong = (component: string) => byteLength(component) > LIMITS.pathComponentBytes;
  return path.includes('\0') || components.some(isTooLong) ? 'invalid_path' : undefined;
}

/** Throws the {@link ServiceError} of {@link pathProblem}, if any. */
export function checkPath(path: string): void {
  const problem = pathProblem(path);
  if (problem !== undefined) {
    throw new ServiceError(problem, undefined, {
      errors: [{ path: '/path', message: 'is not an acceptable path' }],
    });
  }
}

function byteLength(text: string): number {
  return utf8.encode(text).length;
}
