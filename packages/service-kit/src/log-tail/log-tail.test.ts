import { Readable } from 'node:stream';
import { LIMITS, type LogTail } from '@svc/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endWith, lastLines, readLogEnd, tailOf, wholeText } from './log-tail.ts';

async function tail(content: string | Buffer, wanted: LogTail) {
  const bytes = Buffer.from(content);
  const chunks = [bytes.subarray(0, 7), bytes.subarray(7)].filter(({ length }) => length > 0);
  return tailOf(await readLogEnd(Readable.from(chunks)), wanted);
}

const text = fc.string({ unit: fc.constantFrom('a', '\n', 'é', '€', '😀', '\r'), maxLength: 200 });

describe('tailOf', () => {
  it('returns the longest tail that fits without splitting a character', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 300 }), async (log, bytes) => {
        const answer = await tail(log, { bytes });
        expect(log.endsWith(answer.content)).toBe(true);
        const length = Buffer.byteLength(answer.content);
        const total = Buffer.byteLength(log);
        expect(length).toBeLessThanOrEqual(bytes);
        expect(length).toBeGreaterThan(Math.min(bytes, total) - 4);
        expect(answer).toMatchObject({ total_bytes: total, truncated: length < total });
      }),
      { numRuns: 60 },
    );
  });

  it('returns the last lines', async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 20 }), async (log, lines) => {
        const all = log.split('\n');
        const ends = all.at(-1) === '';
        if (ends) all.pop();
        const expected = all.slice(-lines).join('\n') + (ends ? '\n' : '');
        const answer = await tail(log, { lines });
        expect(answer.content).toBe(log === '' ? '' : expected);
      }),
      { numRuns: 60 },
    );
  });

  it('omits a character that is still being written', async () => {
    const log = Buffer.concat([Buffer.from('ok '), Buffer.from('😀').subarray(0, 3)]);
    expect(await tail(log, { lines: 10 })).toEqual({
      content: 'ok ',
      truncated: true,
      total_bytes: 6,
    });
  });

  it('returns at most a megabyte of lines', async () => {
    const answer = await tail(`${'x'.repeat(1_500_000)}\n`, { lines: 1 });
    expect(answer.content.length).toBe(1_048_576);
    expect(answer.truncated).toBe(true);
  });

  it('accepts bytes that are not valid UTF-8', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 50 }),
        fc.integer({ min: 1, max: 60 }),
        async (bytes, count) => {
          const answer = await tail(Buffer.from(bytes), { bytes: count });
          expect(answer.total_bytes).toBe(bytes.length);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('endWith', () => {
  const wanted = fc.oneof(
    fc.record({ bytes: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ lines: fc.integer({ min: 1, max: 9 }) }),
  );
  const log = fc.oneof(
    text.map((content) => Buffer.from(content)),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  );

  it('keeps the tail, and everything from a byte on', () => {
    fc.assert(
      fc.property(log, wanted, fc.nat(70), fc.nat(9), (bytes, tail, from, dropped) => {
        const whole = { bytes, totalBytes: bytes.length + dropped };
        const end = endWith(whole, tail, from);
        expect(tailOf(end, tail)).toEqual(tailOf(whole, tail));
        expect(bytes.subarray(bytes.length - end.bytes.length).equals(end.bytes)).toBe(true);
        expect(end.totalBytes - end.bytes.length).toBeLessThanOrEqual(Math.max(from, dropped));
        expect(endWith(whole, tail).bytes.length).toBeLessThanOrEqual(end.bytes.length);
      }),
      { numRuns: 300 },
    );
  });

  it('is no longer than it must be', () => {
    const whole = { bytes: Buffer.from('one\ntwo\nthree\n'), totalBytes: 14 };
    expect(endWith(whole, { lines: 1 }).bytes.toString()).toBe('wo\nthree\n');
    expect(endWith(whole, { bytes: 1 }, 11).bytes.toString()).toBe('ree\n');
    expect(endWith(whole, { bytes: 1 }, 8).bytes.toString()).toBe('three\n');
  });
});

describe('wholeText and lastLines', () => {
  it('accept empty input', () => {
    expect(wholeText(Buffer.alloc(0), true).length).toBe(0);
    expect(lastLines(Buffer.alloc(0), 3).length).toBe(0);
    expect(lastLines(Buffer.from('\n\n'), 1).toString()).toBe('\n');
  });
});

describe('readLogEnd', () => {
  it('keeps the last megabyte, which may begin within a character', async () => {
    const log = Buffer.from(`x${'é'.repeat(LIMITS.logBytesMax / 2)}`);
    const chunks = [
      log.subarray(0, 100_001),
      log.subarray(100_001, 100_002),
      log.subarray(100_002),
    ];
    const end = await readLogEnd(Readable.from(chunks));
    expect(end.totalBytes).toBe(LIMITS.logBytesMax + 1);
    expect(end.bytes.equals(log.subarray(1))).toBe(true);
    const odd = await readLogEnd(Readable.from([log, Buffer.from('.')]));
    expect(odd.bytes.length).toBe(LIMITS.logBytesMax);
    const { content, truncated } = tailOf(odd, { bytes: LIMITS.logBytesMax });
    expect(content).toBe(`${'é'.repeat(LIMITS.logBytesMax / 2 - 1)}.`);
    expect(truncated).toBe(true);
  });

  it('keeps the end of a log of any length', async () => {
    const log = Buffer.from(Array.from({ length: 600_000 }, (_, line) => `${line}\n`).join(''));
    expect(log.length).toBeGreaterThan(3 * LIMITS.logBytesMax);
    const chunks = Array.from({ length: Math.ceil(log.length / 1_000) }, (_, at) =>
      log.subarray(1_000 * at, 1_000 * (at + 1)),
    );
    const end = await readLogEnd(Readable.from(chunks));
    expect(end.totalBytes).toBe(log.length);
    expect(end.bytes.equals(log.subarray(-LIMITS.logBytesMax))).toBe(true);
  });

  it('rejects with the error of the stream', async () => {
    const broken = new Readable({
      read() {
        this.destroy(new Error('broken'));
      },
    });
    await expect(readLogEnd(broken)).rejects.toThrow('broken');
  });
});
