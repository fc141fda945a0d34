import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPath, pathProblem } from './paths.ts';

const component = fc
  .string({ minLength: 1, maxLength: 20, unit: 'binary' })
  .filter((text) => text !== '..' && !/[/\0]/.test(text) && text.isWellFormed());
const goodPath = fc
  .array(component, { minLength: 1, maxLength: 8 })
  .map((parts) => `/${parts.join('/')}`);

describe('paths in a sandbox', () => {
  it('with ordinary components are accepted', () => {
    fc.assert(
      fc.property(goodPath, (path) => {
        expect(pathProblem(path)).toBeUndefined();
        checkPath(path);
      }),
    );
  });

  it('with a `..` component are refused, at any position', () => {
    fc.assert(
      fc.property(goodPath, fc.nat(6), (path, at) => {
        const parts = path.split('/').slice(1);
        parts.splice(Math.min(at, parts.length), 0, '..');
        expect(pathProblem(`/${parts.join('/')}`)).toBe('path_traversal');
      }),
    );
  });

  it.each<[string, string]>([
    ['', 'path_required'],
    ['tmp/x', 'path_not_absolute'],
    ['~/x', 'path_not_absolute'],
    ['%2ftmp', 'path_not_absolute'],
    ['/..', 'path_traversal'],
    ['/a/../b', 'path_traversal'],
    ['/a\0b', 'invalid_path'],
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
    '/%2e%2E/x',
    '/a/..%2fb',
    '/a%00b',
    '/a/..\\b',
    '/%252e%252e',
    `/${'a'.repeat(255)}`,
    '/abc'.repeat(1024),
  ])('#%# is accepted', (path) => {
    expect(pathProblem(path)).toBeUndefined();
  });
});
