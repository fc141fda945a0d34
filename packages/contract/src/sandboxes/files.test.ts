import { expect, test } from 'vitest';
import { declaredUploadBytes } from './files.ts';

test('reads the declared length of an upload', () => {
  expect(declaredUploadBytes(undefined, 10)).toBeUndefined();
  expect(declaredUploadBytes('1', 10)).toBe(1);
  expect(declaredUploadBytes('10', 10)).toBe(10);
});

test.each([
  ['0', 'missing_body'],
  ['11', 'payload_too_large'],
])('rejects a declared length of %s bytes with %s', (length, code) => {
  expect(() => declaredUploadBytes(length, 10)).toThrow(expect.objectContaining({ code }));
});
