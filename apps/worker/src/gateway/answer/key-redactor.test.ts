import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KeyRedactor, withoutKey } from './key-redactor.ts';

const KEY = 'sk-sk-key"1';

/** A key that makes a naive search take quadratic time in a text of its first letter. */
const WORST_KEY = `${'a'.repeat(4096)}b${'a'.repeat(4095)}`;

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

test('masks what a search in the whole text finds, however the key repeats and the text is cut', () => {
  const letters = fc.constantFrom('a', 'a', 'a', 'b', '"', '\\', '*');
  const strings = (minLength: number, maxLength: number) =>
    fc.array(letters, { minLength, maxLength }).map((all) => all.join(''));
  const keys = fc.tuple(strings(1, 4), fc.integer({ min: 8, max: 14 }), strings(0, 2));
  const cases = keys
    .map(([period, length, rest]) => period.repeat(length).slice(0, length) + rest)
    .chain((key) => {
      const escaped = JSON.stringify(key).slice(1, -1);
      const piece = fc.oneof(
        fc.constantFrom(key, escaped, key.slice(1), key.slice(0, -1), escaped.slice(0, -1)),
        strings(0, 5),
      );
      return fc.tuple(fc.constant(key), fc.array(piece));
    });
  fc.assert(
    fc.property(cases, fc.infiniteStream(fc.integer({ min: 1, max: 9 })), ([key, parts], sizes) => {
      const text = parts.join('');
      const redactor = new KeyRedactor(key);
      let out = '';
      for (let at = 0; at < text.length; ) {
        const size = sizes.next().value ?? 1;
        out += redactor.push(Buffer.from(text.slice(at, at + size)));
        at += size;
      }
      const expected = [...new Set([key, JSON.stringify(key).slice(1, -1)])].reduce(
        (masked, spelling) => masked.replaceAll(spelling, () => '*'.repeat(spelling.length)),
        text,
      );
      expect(out + redactor.end()).toBe(expected);
      expect(withoutKey(text, key)).toBe(expected);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['a stream', (key: string) => redact('a'.repeat(64 * 1024), 16 * 1024, key)],
  ['a header', (key: string) => withoutKey('a'.repeat(15_000), key)],
])('takes no longer to search %s for a key that repeats than for another', (_name, search) => {
  const leastMs = (key: string) => {
    const times = Array.from({ length: 5 }, () => {
      const before = performance.now();
      search(key);
      return performance.now() - before;
    });
    return Math.min(...times);
  };
  const other = `${'b'.repeat(4096)}a${'b'.repeat(4095)}`;
  expect(leastMs(WORST_KEY) / leastMs(other)).toBeLessThan(100);
});
