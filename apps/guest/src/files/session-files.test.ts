import { expect, test } from 'vitest';
import { FilesError, hasFoundChange } from './session-files.ts';

const FOUND = { exitCode: 0, signal: null, stdout: '', stderr: '' };

test.each([
  ['finds a file', { stdout: 'changed' }, true],
  ['finds a file and is killed', { exitCode: null, signal: 'SIGKILL', stdout: 'changed' }, true],
  ['finds none', {}, false],
  ['finds none, and may not read some', { exitCode: 1, stderr: 'Permission denied' }, false],
] as const)('a search that %s', (_what, result, hasChanged) => {
  expect(hasFoundChange({ ...FOUND, ...result })).toBe(hasChanged);
});

test('a search that is killed before it finds a file does not mean that none has changed', () => {
  const killed = { ...FOUND, exitCode: null, signal: 'SIGKILL' } as const;
  expect(() => hasFoundChange(killed)).toThrow(FilesError);
});
