import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPath, pathProblem } from './paths.ts';

const component = fc
  .string({ minLength: 1, maxLength: 20, unit: 'binary' })
  .filter((text) => text !== '..' && !/[%/\\\0]/.test(text) && text.isWellFormed());
const goodPath = fc
  .array(component, { minLength: 1, maxLength: 8 })
  .map((parts) => `/${parts.join('/')}`);

/** An encoding of `..` that some decoder understands, nested `depth` levels deep. */
const escaped = (depth: number): string =>
  depth === 0
    ? '..'
    : escaped(depth - 1)
        .replaceAll('%', '%25')
        .replaceAll('.', '%2e');

describe('paths in a sandbox', () => {
  it('with ordinary components are accepted', () => {
    fc.assert(
      fc.property(goodPath, (path) => {
        expect(pathProblem(path)).toBeUndefined();
        checkPath(path);
      }),
    );
  });

  it('with a `..` component are refused, at any position and in any encoding', () => {
    fc.assert(
      fc.property(
        goodPath,
        fc.nat(6),
        fc.nat(10),
        fc.constantFrom('/', '%2f', '%252F', '\\'),
        (path, at, depth, slash) => {
          const parts = path.split('/').slice(1);
          parts.splice(Math.min(at, parts.length), 0, escaped(depth));
          expect(pathProblem(`/${parts.join(slash)}`)).toBe('path_traversal');
        },
      ),
    );
  });

  it.each<[string, string]>([
    ['', 'path_required'],
    ['tmp/x', 'path_not_absolute'],
    ['~/x', 'path_not_absolute'],
    ['%2ftmp', 'path_not_absolute'],
    ['/..', 'path_traversal'],
    ['/a/../b', 'path_traversal'],
    ['/a/.%2E/b', 'path_traversal'],
    ['/a/%c0%ae%c0%ae/b', 'path_traversal'],
    ['/a/%e0%80%ae./b', 'path_traversal'],
    ['/a/..%c0%afb', 'path_traversal'],
    ['/a\0b', 'invalid_path'],
    ['/a%00b', 'invalid_path'],
    ['/a%2500b', 'invalid_path'],
    ['/\ud800', 'invalid_path'],
    [`/${'a'.repeat(256)}`, 'invalid_path'],
    [`/${'é'.repeat(128)}`, 'invalid_path'],
    [`${'/abc'.repeat(1024)}d`, 'invalid_path'],
  ])('#%# is refused', (path, problem) => {
    expect(pathProblem(path)).toBe(problem);
  });

  it.each([
    '/',
    '/a..b',
    '/...',
    '/..a',
    '/a/.',
    '/100%',
    '/a%20b',
    `/${'a'.repeat(255)}`,
    '/abc'.repeat(1024),
  ])('#%# is accepted', (path) => {
    expect(pathProblem(path)).toBeUndefined();
  });
});
