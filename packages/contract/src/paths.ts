/** The rule for paths of files inside a sandbox. */

import type { ErrorCode } from './errors/catalogue.ts';
import { ServiceError } from './errors/service-error.ts';
import { LIMITS } from './limits.ts';

export type PathProblem = Extract<
  ErrorCode,
  'path_required' | 'path_not_absolute' | 'path_traversal' | 'invalid_path'
>;

const utf8 = new TextEncoder();
/** Overlong and plain escapes of `.`, `/` and `\`, which careless decoders turn into these characters. */
const ESCAPES: readonly [RegExp, string][] = [
  [/%(?:2e|c0%ae|e0%80%ae|f0%80%80%ae)/gi, '.'],
  [/%(?:2f|c0%af|e0%80%af|f0%80%80%af)/gi, '/'],
  [/%(?:5c|c1%9c|e0%81%9c|f0%80%81%9c)/gi, '\\'],
  [/%25/g, '%'],
];
const MAX_DECODINGS = 8;

/**
 * The rule that an already URL-decoded path breaks, or undefined when it is acceptable:
 * absolute, no `..` component however often it is percent-encoded, no NUL, at most 4096 bytes
 * and 255 bytes a component.
 */
export function pathProblem(path: string): PathProblem | undefined {
  if (path === '') return 'path_required';
  if (!path.startsWith('/')) return 'path_not_absolute';
  if (hasForbiddenCharacter(path) || utf8.encode(path).length > LIMITS.pathBytes) {
    return 'invalid_path';
  }
  if (climbs(path)) return 'path_traversal';
  const tooLong = path
    .split('/')
    .some((component) => utf8.encode(component).length > LIMITS.pathComponentBytes);
  return tooLong ? 'invalid_path' : undefined;
}

/** Throws the {@link ServiceError} of {@link pathProblem}, if any. */
export function checkPath(path: string): void {
  const problem = pathProblem(path);
  if (problem !== undefined) {
    throw new ServiceError(problem, undefined, {
      errors: [{ path: 'path', message: 'is not an acceptable path' }],
    });
  }
}

function hasForbiddenCharacter(path: string): boolean {
  // A string that is not well-formed UTF-16 has no UTF-8 form, so it names no file.
  return path.includes('\0') || /%00/.test(path) || !path.isWellFormed();
}

function climbs(path: string): boolean {
  let decoded = path;
  for (let round = 0; round < MAX_DECODINGS; round += 1) {
    if (decoded.split(/[/\\]/).includes('..')) return true;
    const next = decodeOnce(decoded);
    if (next === decoded) return false;
    decoded = next;
  }
  // Nobody nests escapes this deep in good faith.
  return true;
}

function decodeOnce(text: string): string {
  return ESCAPES.reduce((result, [escaped, plain]) => result.replace(escaped, plain), text);
}
