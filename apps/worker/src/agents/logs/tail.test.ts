import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { LogTail } from '@svc/contract';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AgentLogs } from './agent-logs.ts';
import { lastLines, tailOf, wholeText } from './tail.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-tail-'));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

async function tail(content: string | Buffer, wanted: LogTail) {
  const path = join(directory, 'log');
  await writeFile(path, content);
  const file = await open(path);
  try {
    return await tailOf(file, wanted);
  } finally {
    await file.close();
  }
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

describe('wholeText and lastLines', () => {
  it('accept empty input', () => {
    expect(wholeText(Buffer.alloc(0), true).length).toBe(0);
    expect(lastLines(Buffer.alloc(0), 3).length).toBe(0);
    expect(lastLines(Buffer.from('\n\n'), 1).toString()).toBe('\n');
  });
});

describe('AgentLogs', () => {
  it('returns the tail of a copied log, and an empty one without a copy', async () => {
    const logs = new AgentLogs(directory);
    expect(await logs.read('vm_1', { lines: 1 })).toMatchObject({ content: '' });
    await logs.keep('vm_1', Readable.from(['one\n', 'two\n']));
    expect(await logs.read('vm_1', { lines: 1 })).toEqual({
      content: 'two\n',
      truncated: true,
      total_bytes: 8,
    });
  });
});
