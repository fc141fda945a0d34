/** The rules for file paths in a sandbox. */

import type { ErrorCode } from './errors/catalogue.ts';
import { ServiceError } from './errors/service-error.ts';
import { LIMITS } from './limits.ts';

export type PathProblem = Extract<
  ErrorCode,
  'path_required' | 'path_not_absolute' | 'path_traversal' | 'invalid_path'
>;

const utf8 = new TextEncoder();
/** Escapes, including overlong ones, of the relevant characters. The escaped percent sign is last, because it starts another layer. */
const ESCAPES: readonly [RegExp, string][] = [
  [/%(?:2e|c0%ae|e0%80%ae|f0%80%80%ae)/gi, '.'],
  [/%(?:2f|c0%af|e0%80%af|f0%80%80%af)/gi, '/'],
  [/%(?:5c|c1%9c|e0%81%9c|f0%80%81%9c)/gi, '\\'],
  [/%00/g, '\0'],
  [/%25/g, '%'],
];
const MAX_READINGS = 8;

/**
 * The rule that a URL-decoded path breaks, or undefined when it is acceptable:
 * absolute, no `..` component and no NUL however often they are percent-encoded,
 * at most 4096 bytes, and 255 bytes per component.
 */
export function pathProblem(path: string): PathProblem | undefined {
  if (path === '') return 'path_required';
  if (!path.startsWith('/')) return 'path_not_absolute';
  // A string that is not well-formed UTF-16 has no UTF-8 form and cannot name a file.
  if (byteLength(path) > LIMITS.pathBytes || !path.isWellFormed()) return 'invalid_path';
  const readings = readingsOf(path);
  if (readings === undefined || readings.some(climbs)) return 'path_traversal';
  if (readings.some((reading) => reading.includes('\0'))) return 'invalid_path';
  const isTooLong = (component: string) => byteLength(component) > LIMITS.pathComponentBytes;
  return path.split('/').some(isTooLong) ? 'invalid_path' : undefined;
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

/** The path and all results of repeated decoding; undefined if decoding does not end. */
function readingsOf(path: string): string[] | undefined {
  const readings = [path];
  for (let current = path; readings.length <= MAX_READINGS; ) {
    const next = decodeOnce(current);
    if (next === current) return readings;
    readings.push(next);
    current = next;
  }
  // Only an attack nests escapes this deep.
  return undefined;
}

function decodeOnce(text: string): string {
  return ESCAPES.reduce((result, [escaped, plain]) => result.replace(escaped, plain), text);
}

function climbs(path: string): boolean {
  return path.split(/[/\\]/).includes('..');
}

function byteLength(text: string): number {
  return utf8.encode(text).length;
}
