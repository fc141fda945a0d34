import type { OutputStream } from '@svc/microvm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteBudget } from './byte-budget.ts';
import { OutputCollector, wholeCharacters } from './output-collector.ts';

const stream = fc.constantFrom<OutputStream>('stdout', 'stderr');

/** A text, cut into chunks at arbitrary bytes. */
const chunked = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 60 }), fc.array(fc.nat({ max: 200 })))
  .map(([text, cuts]) => {
    const bytes = Buffer.from(text.toWellFormed());
    const edges = [
      0,
      ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b),
      bytes.length,
    ];
    const chunks = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
    return { text: text.toWellFormed(), chunks };
  });

function collect(chunks: readonly Buffer[], limit: number, on: OutputStream, budget: ByteBudget) {
  const output = new OutputCollector(limit, budget);
  for (const chunk of chunks) output.add(on, chunk);
  const { output: text } = output.finish();
  const { truncated } = output;
  output.release();
  return { text, truncated };
}

describe('OutputCollector', () => {
  it('returns the text regardless of its chunks', () => {
    fc.assert(
      fc.property(chunked, stream, ({ text, chunks }, on) => {
        const budget = new ByteBudget(10_000);
        expect(collect(chunks, 10_000, on, budget)).toEqual({ text, truncated: false });
        expect(budget.left).toBe(10_000);
      }),
    );
  });

  it('keeps the longest prefix that fits without cutting a character', () => {
    fc.assert(
      fc.property(chunked, fc.nat({ max: 100 }), ({ text, chunks }, limit) => {
        const kept = collect(chunks, limit, 'stdout', new ByteBudget(10_000));
        const length = Buffer.byteLength(kept.text);
        expect(text.startsWith(kept.text)).toBe(true);
        expect(length).toBeLessThanOrEqual(limit);
        expect(kept.truncated).toBe(length < Buffer.byteLength(text));
        if (kept.truncated) expect(length).toBeGreaterThan(limit - 4);
      }),
    );
  });

  it('keeps a prefix when the shared budget runs out', () => {
    fc.assert(
      fc.property(chunked, fc.nat({ max: 100 }), ({ text, chunks }, left) => {
        const budget = new ByteBudget(1_000, new ByteBudget(left));
        const kept = collect(chunks, 10_000, 'stdout', budget);
        expect(text.startsWith(kept.text)).toBe(true);
        expect(Buffer.byteLength(kept.text)).toBeLessThanOrEqual(left);
        expect(kept.truncated).toBe(kept.text !== text);
        expect(budget.left).toBe(1_000);
      }),
    );
  });

  it('returns both streams in order of arrival, and each apart, and decodes them separately', () => {
    const output = new OutputCollector(100, new ByteBudget(100));
    const euro = Buffer.from('€');
    output.add('stdout', euro.subarray(0, 1));
    output.add('stderr', Buffer.from('é'));
    output.add('stdout', euro.subarray(1));
    expect(output.finish()).toEqual({ output: 'é€', stdout: '€', stderr: 'é' });
  });

  it('limits both streams together, and cuts the same parts from each', () => {
    const output = new OutputCollector(5, new ByteBudget(100));
    output.add('stdout', Buffer.from('abc'));
    output.add('stderr', Buffer.from('déf'));
    output.add('stdout', Buffer.from('ghi'));
    expect(output.finish()).toEqual({ output: 'abcd', stdout: 'abc', stderr: 'd' });
    expect(output.truncated).toBe(true);
  });

  it('decodes invalid UTF-8 to U+FFFD', () => {
    const output = new OutputCollector(100, new ByteBudget(100));
    output.add('stdout', Buffer.from([0x61, 0xff, 0x62, 0xe2, 0x82]));
    expect(output.finish().output).toBe('a\ufffdb\ufffd');
  });
});

describe('wholeCharacters', () => {
  it('returns at most the limit, and cuts at most one character', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 20 }), fc.nat({ max: 25 }), (bytes, limit) => {
        const whole = wholeCharacters(bytes, limit);
        expect(whole).toBeLessThanOrEqual(Math.min(limit, bytes.length));
        expect(whole).toBeGreaterThan(Math.min(limit, bytes.length) - 4);
      }),
    );
  });
});
