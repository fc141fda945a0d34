import { expect, test } from 'vitest';
import { declaredUploadBytes } from './files.ts';

test('reads the declared length of an upload', () => {
  expect(declaredUploadBytes(undefined, 10)).toBeUndefined();
  expect(declaredUploadBytes('0', 10)).toBe(0);
  expect(declaredUploadBytes('10', 10)).toBe(10);
});

test('rejects a declared length over the limit', () => {
  const tooLarge = expect.objectContaining({ code: 'payload_too_large' });
  expect(() => declaredUploadBytes('11', 10)).toThrow(tooLarge);
});
