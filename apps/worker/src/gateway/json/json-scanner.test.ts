import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonScanner } from './json-scanner.ts';
import type { FoundValue } from './value-capture.ts';

const WANTED = ['usage', 'message.usage', '[].usage', 'stream'];

/** The values found in JSON that arrives in chunks of `size` bytes. */
function scan(json: string, size = json.length || 1): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const bytes = Buffer.from(json);
  const scanner = new JsonScanner(WANTED, ({ path, start, end, text }) => {
    expect(bytes.subarray(start, end).toString().trim()).toBe(text);
    found[path] = JSON.parse(text ?? 'null');
  });
  for (let at = 0; at < bytes.length; at += size) scanner.push(bytes.subarray(at, at + size));
  return found;
}

describe('wanted members', () => {
  test.each([1, 2, 3, 7, 1000])('are found in chunks of %i bytes', (size) => {
    const json = JSON.stringify({
      text: 'no "usage": {"input": 9} here \\',
      message: { content: [{ usage: 1 }], usage: { input: 2, list: [1, { a: '}' }] } },
      usage: { 'ü"\\': 3 },
      stream: true,
    });
    expect(scan(json, size)).toEqual({
      'message.usage': { input: 2, list: [1, { a: '}' }] },
      usage: { 'ü"\\': 3 },
      stream: true,
    });
  });

  test('are found in array elements, and with whitespace around them', () => {
    expect(scan('[{"usage" : {"a":1}\n} ,\r\n{ "usage":2 }]')).toEqual({ '[].usage': 2 });
  });

  test('are found with escaped keys', () => {
    expect(scan('{"str\\u0065am": true}')).toEqual({ stream: true });
  });

  test('are not found at other paths', () => {
    expect(scan('{"a":{"b":{"c":{"d":{"usage":1}}}},"x":["stream"],"y":"stream"}')).toEqual({});
    expect(scan('{"a":{"usage":1},"choices":[{"usage":2}]}')).toEqual({});
  });
});

test.each([
  ['in a string', '{"usage":"abc'],
  ['after a backslash', '{"usage":"abc\\'],
  ['in a key', '{"usa'],
  ['in a value', '{"usage":{"a":1'],
  ['before a value', '{"usage":'],
  ['deep inside', '[[[[{"a":'],
])('starts anew after a document that is cut off %s', (_where, cut) => {
  const found: FoundValue[] = [];
  const scanner = new JsonScanner(WANTED, (value) => found.push(value));
  scanner.push(Buffer.from(cut));
  scanner.reset();
  scanner.push(Buffer.from('{"usage":2,"stream":true}'));
  expect(found).toEqual([
    { path: 'usage', start: 9, end: 10, text: '2' },
    { path: 'stream', start: 20, end: 24, text: 'true' },
  ]);
});

test('finds members three levels deep, with keys of up to 255 bytes', () => {
  const long = 'k'.repeat(255);
  const found: string[] = [];
  const scanner = new JsonScanner(['a.b.c', 'a.b.c.d', long, `${long}k`], ({ path, text }) =>
    found.push(`${path}=${text}`),
  );
  const json = { a: { b: { x: 0, c: { d: 1 } } }, [long]: 2, [`${long}k`]: 3 };
  scanner.push(Buffer.from(JSON.stringify(json)));
  expect(found).toEqual(['a.b.c={"d":1}', `${long}=2`]);
});

test('reports an overlong value without its text', () => {
  const lengths: (number | undefined)[] = [];
  const scanner = new JsonScanner(['usage'], ({ text }) => lengths.push(text?.length));
  const most = 64 * 1024;
  for (const length of [most, most + 1]) {
    scanner.push(Buffer.from(`{"usage":"${'x'.repeat(length - 2)}","usage":1}`));
    scanner.reset();
  }
  expect(lengths).toEqual([most, 1, undefined, 1]);
});

test.each([
  ['key', '{"'],
  ['value', '{"usage":"'],
])('keeps nothing of an overlong %s', (_part, beginning) => {
  const scanner = new JsonScanner(WANTED, () => undefined);
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  scanner.push(Buffer.from(beginning));
  const before = process.memoryUsage().arrayBuffers;
  for (let pushed = 0; pushed < 64; pushed += 1) scanner.push(chunk);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(chunk.length);
});

test('agrees with JSON.parse on any JSON', () => {
  fc.assert(
    fc.property(fc.json(), fc.json(), fc.integer({ min: 1, max: 9 }), (usage, other, size) => {
      const json = `{"other":${other},"usage":${usage},"last":${other}}`;
      expect(scan(json, size).usage).toEqual(JSON.parse(usage));
    }),
  );
});

test('never fails on any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.string(), (bytes, text) => {
      const scanner = new JsonScanner(WANTED, () => undefined);
      scanner.push(Buffer.from(bytes));
      scanner.reset();
      scanner.push(Buffer.from(`{"usage":${text}`));
      scanner.push(Buffer.from('{[,:"}]}]'));
    }),
  );
});

test('takes about as long for keys that are not valid as for others', () => {
  const leastMs = (key: string) => {
    const json = Buffer.from(`{${`"${key}":1,`.repeat(2_000)}`);
    const times = Array.from({ length: 20 }, () => {
      const scanner = new JsonScanner(WANTED, () => undefined);
      const before = performance.now();
      scanner.push(json);
      return performance.now() - before;
    });
    return Math.min(...times);
  };
  expect(leastMs('\\x') / leastMs('xx')).toBeLessThan(5);
});
