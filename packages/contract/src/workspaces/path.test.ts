import { expect, test } from 'vitest';
import { checkWorkspacePath } from './path.ts';

test.each(['a', 'a/b.txt', '.hidden', '..a', 'a b/ü😀', '%2e%2e/a', 'a\\b', 'a\nb', '...'])(
  'accepts %j',
  (path) => {
    expect(() => checkWorkspacePath(path)).not.toThrow();
  },
);

test.each([
  ...['', '/', '/a', 'a/', 'a//b', '.', '..', './a', 'a/.', '../a', 'a/../b', 'a/..', 'a\0b'],
  ...['\ud800', 'x'.repeat(256), 'é'.repeat(128), `${'a/'.repeat(2048)}a`],
])('refuses %j', (path) => {
  expect(() => checkWorkspacePath(path)).toThrow(
    expect.objectContaining({ code: 'workspace_path_invalid' }),
  );
});
