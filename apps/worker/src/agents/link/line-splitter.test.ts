import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineSplitter } from './line-splitter.ts';

describe('LineSplitter', () => {
  it('yields the same lines regardless of how the stream is split into chunks', () => {
    const line = fc
      .string({ unit: 'binary', maxLength: 30 })
      .map((text) => text.replaceAll('\n', ''));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat({ max: 40 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        const splitter = new LineSplitter(1_000);
        const found: string[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          const chunk = bytes.subarray(at, at + cut);
          at += chunk.length;
          found.push(...splitter.push(chunk).map((one) => one.toString()));
        }
        found.push(...splitter.push(bytes.subarray(at)).map((one) => one.toString()));
        expect(found).toEqual(lines.map((text) => Buffer.from(text).toString()));
      }),
    );
  });

  it('rejects a line that exceeds the limit, complete or not', () => {
    const splitter = new LineSplitter(100);
    expect(splitter.push(Buffer.from(`${'x'.repeat(100)}\n`))).toHaveLength(1);
    splitter.push(Buffer.alloc(60));
    expect(() => splitter.push(Buffer.alloc(60))).toThrow('too long');
  });
});
