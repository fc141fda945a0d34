import { text as textOf } from 'node:stream/consumers';
import { type Budget, KeyedBudget } from '@svc/service-kit/concurrency';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CollectedOutput, type OutputStream, wholeCharacters } from './collected-output.ts';

const EXIT = { exit_code: 0, duration_ms: 1, truncated: false };
const stream = fc.constantFrom<OutputStream>('stdout', 'stderr');
/** Output as it arrives: texts of the two streams. */
const chunks = fc.array(
  fc.tuple(
    stream,
    fc.string({ unit: 'binary', maxLength: 30 }).map((text) => text.toWellFormed()),
  ),
  { maxLength: 20 },
);

const budgetOf = (bytes: number) => new KeyedBudget(bytes).of('a');

async function collect(
  arrived: readonly (readonly [OutputStream, string])[],
  limit: number,
  budget: Budget,
) {
  const output = new CollectedOutput(limit, budget);
  for (const [from, text] of arrived) output.add(from, text);
  return JSON.parse(await textOf(output.json(EXIT)));
}

const joined = (arrived: readonly (readonly [OutputStream, string])[], only?: OutputStream) =>
  arrived.flatMap(([from, text]) => (only === undefined || only === from ? [text] : [])).join('');

describe('CollectedOutput', () => {
  it('returns both streams in order of arrival, and each apart, and the budget all its bytes', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, async (arrived) => {
        const budget = budgetOf(100_000);
        expect(await collect(arrived, 100_000, budget)).toEqual({
          output: joined(arrived),
          stdout: joined(arrived, 'stdout'),
          stderr: joined(arrived, 'stderr'),
          ...EXIT,
        });
        expect(budget.left).toBe(100_000);
      }),
    );
  });

  it('keeps the longest prefix that fits without cutting a character', async () => {
    await fc.assert(
      fc.asyncProperty(chunks, fc.nat({ max: 100 }), async (arrived, limit) => {
        const text = joined(arrived);
        const kept = await collect(arrived, limit, budgetOf(100_000));
        const length = Buffer.byteLength(kept.output);
        expect(text.startsWith(kept.output)).toBe(true);
        expect(length).toBeLessThanOrEqual(limit);
        expect(kept.truncated).toBe(length < Buffer.byteLength(text));
        if (kept.truncated) expect(length).toBeGreaterThan(limit - 4);
      }),
    );
  });

  it('keeps a prefix when the shared budget runs out, however small the chunks are', async () => {
    const budget = new KeyedBudget(1_000_000, { own: 0, shared: 10_000 }).of('a');
    const many = Array.from(
      { length: 5_000 },
      (_, n) => [n % 2 ? 'stdout' : 'stderr', 'x'] as const,
    );
    const output = new CollectedOutput(1_000_000, budget);
    for (const [from, text] of many) output.add(from, text);
    const body = output.json(EXIT);
    expect(budget.left).toBe(0);
    const { output: kept, truncated } = JSON.parse(await textOf(body));
    expect(kept.length).toBeLessThan(100);
    expect(truncated).toBe(true);
    expect(budget.left).toBe(2_500);
  });

  it('holds its bytes until the answer is read or closed', async () => {
    const budget = budgetOf(1_000_000);
    for (const end of ['read', 'destroyed'] as const) {
      const output = new CollectedOutput(1_000_000, budget);
      output.add('stdout', 'x'.repeat(500_000));
      const body = output.json(EXIT);
      expect(budget.left).toBeLessThan(500_000);
      if (end === 'read') expect(JSON.parse(await textOf(body)).output).toHaveLength(500_000);
      else body.destroy();
      await expect.poll(() => budget.left).toBe(1_000_000);
    }
  });
});

describe('wholeCharacters', () => {
  it('cuts before a character of four bytes, and anywhere in a longer run that is no UTF-8', () => {
    const character = [0xf0, 0x9f, 0x98, 0x80];
    for (const limit of [1, 2, 3, 4]) {
      expect(wholeCharacters(Uint8Array.from([0x78, ...character]), limit)).toBe(1);
    }
    expect(wholeCharacters(Uint8Array.from([0x78, 0x80, 0x80, 0x80, 0x80]), 4)).toBe(4);
  });

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
