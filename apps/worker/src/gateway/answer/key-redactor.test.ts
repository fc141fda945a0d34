import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyRedactor } from './key-redactor.ts';

const KEY = 'sk-sk-key"1';

function redact(text: string, size: number, key = KEY): string {
  const redactor = new KeyRedactor(key);
  const bytes = Buffer.from(text);
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size)
    out.push(redactor.push(bytes.subarray(at, at + size)));
  return Buffer.concat([...out, redactor.end()]).toString();
}

test.each([1, 2, 3, 5, 100])(
  'masks the key in chunks of %i bytes, even when escaped for JSON',
  (size) => {
    const text = `sk-${KEY}${KEY} ${JSON.stringify({ KEY })} sk-sk-ke`;
    expect(redact(text, size)).toBe(
      text.replaceAll(KEY, '*'.repeat(11)).replaceAll('sk-sk-key\\"1', '*'.repeat(12)),
    );
  },
);

test('masks keys from eight bytes on, which match no unrelated text', () => {
  expect(redact('a key: 12345678', 100, '12345678')).toBe('a key: ********');
  expect(redact('a key: 1234567', 100, '1234567')).toBe('a key: 1234567');
  expect(redact('text', 100, '')).toBe('text');
});

test('leaves other bytes unchanged', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('s', 'k', '-', 'sk-sk-', 'ü')),
      fc.integer({ min: 1, max: 9 }),
      (parts, size) => {
        expect(redact(parts.join(''), size)).toBe(parts.join(''));
      },
    ),
  );
});

test('holds back only a possible beginning of the key', () => {
  const redactor = new KeyRedactor(KEY);
  expect(redactor.push(Buffer.from('data: 1\n\n')).toString()).toBe('data: 1\n\n');
  expect(redactor.push(Buffer.from('sk-')).toString()).toBe('');
  expect(redactor.push(Buffer.from('x')).toString()).toBe('sk-x');
});
