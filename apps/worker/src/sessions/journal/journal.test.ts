import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../test/manual-clock.ts';
import type { NewFrame, StoredFrame } from './format.ts';
import { Journal, type JournalOptions } from './journal.ts';

const clock = new ManualClock();
const NEW = { frames: '', lastSeq: 0 };
const opened: Journal[] = [];
let parent: string;
let directory: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'svc-journal-'));
  directory = join(parent, 'j');
});

afterEach(async () => {
  for (const journal of opened.splice(0)) await journal.close();
  await rm(parent, { recursive: true, force: true });
});

async function create(...args: Parameters<typeof Journal.create>): Promise<Journal> {
  const journal = await Journal.create(...args);
  opened.push(journal);
  return journal;
}

async function reopen(options: JournalOptions): Promise<Journal> {
  const journal = await Journal.open(options);
  opened.push(journal);
  return journal;
}

function said(data: string, n = 0): NewFrame {
  return { n, frame: { type: 'text_delta', data } };
}

async function all(journal: Journal, from = journal.firstSeq): Promise<StoredFrame[]> {
  const frames: StoredFrame[] = [];
  for (let next = from; next <= journal.lastSeq; ) {
    const some = await journal.read(next);
    if (some.length === 0) break;
    frames.push(...some);
    next = (some.at(-1)?.seq ?? next) + 1;
  }
  return frames;
}

const words = (frames: readonly StoredFrame[]) => frames.map(({ text }) => JSON.parse(text).data);

describe('a journal', () => {
  it('numbers frames, and has them on disk before it hands them on', async () => {
    const journal = await create({ directory, clock }, NEW);
    const handedOn: { texts: string[]; onDisk: Promise<StoredFrame[]> }[] = [];
    journal.onKept = (frames) => {
      const onDisk = reopen({ directory, clock }).then((other) => all(other));
      handedOn.push({ texts: frames.map(({ text }) => text), onDisk });
    };
    await journal.append([said('a', 1), said('b', 2)]);
    await journal.append([said('c', 3)]);
    for (const { texts, onDisk } of handedOn) {
      expect((await onDisk).map(({ text }) => text)).toEqual(expect.arrayContaining(texts));
    }
    expect((await all(journal)).map(({ seq, text }) => [seq, JSON.parse(text)])).toEqual(
      ['a', 'b', 'c'].map((data, index) => [
        index + 1,
        { type: 'text_delta', data, seq: index + 1, ts: '2026-01-01T00:00:00.000Z' },
      ]),
    );
    expect(journal.lastN).toBe(3);
  });

  it('goes on after the frames of a resumed session', async () => {
    const first = await create({ directory, clock }, NEW);
    await first.append([said('a'), said('b')]);
    const frames = (await all(first)).map(({ text }) => `${text}\n`).join('');
    const second = await create({ directory, clock }, { frames, lastSeq: 5 });
    expect([second.lastSeq, second.firstSeq, second.committedSeq, second.lastN]).toEqual([
      5, 1, 5, 0,
    ]);
    await second.append([said('c')]);
    expect((await all(second)).map(({ seq }) => seq)).toEqual([1, 2, 6]);
  });

  it('takes nothing from a history that is no frames', async () => {
    const frames = 'nonsense\n{"type":"x","seq":3}\n{"a":1,"seq":2,"ts":"t"}\n';
    const journal = await create({ directory, clock }, { frames, lastSeq: 9 });
    await journal.append([said('c')]);
    expect((await all(journal, 3)).map(({ seq }) => seq)).toEqual([10]);
  });

  it('cuts off what a killed process had not written to the end', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([said('a', 1), { n: 2, frame: { type: 'task_started' } }]);
    await journal.close();
    const [name = ''] = (await readdir(directory)).filter((one) => one.endsWith('.frames'));
    await appendFile(join(directory, name), '3 {"type":"text_delta","data":"half of');
    const again = await reopen({ directory, clock });
    expect([again.lastSeq, again.lastN, again.taskRuns]).toEqual([2, 2, true]);
    await again.append([said('b', 3)]);
    expect((await all(again)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(words(await all(await reopen({ directory, clock })))[2]).toBe('b');
  });

  it('keeps the newest frames within its bound, and knows where they begin', async () => {
    const options = { directory, clock, maxBytes: 20_000, segmentBytes: 2_000 };
    const journal = await create(options, NEW);
    for (let index = 0; index < 100; index += 1) await journal.append([said('x'.repeat(1_000))]);
    const kept = await all(journal);
    expect(journal.firstSeq).toBeGreaterThan(70);
    expect(kept.map(({ seq }) => seq)).toEqual(
      Array.from({ length: kept.length }, (_, index) => journal.firstSeq + index),
    );
    expect(kept.length).toBeGreaterThanOrEqual(19);
    expect((await journal.read(1))[0]?.seq).toBe(journal.firstSeq);
  });

  it('hands nothing on that it could not write, and numbers without a gap after it', async () => {
    const journal = await create({ directory, clock, segmentBytes: 1 }, NEW);
    await journal.append([said('a')]);
    const shown: number[] = [];
    journal.onKept = (frames) => shown.push(...frames.map(({ seq }) => seq));
    await rm(directory, { recursive: true });
    await expect(journal.append([said('b')])).rejects.toThrow();
    expect([shown, journal.lastSeq]).toEqual([[], 1]);
    await create({ directory, clock }, NEW);
    await journal.append([said('c')]);
    expect(shown).toEqual([2]);
  });

  it('remembers what is committed', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([said('a'), said('b')]);
    await journal.noteCommitted(1);
    await journal.close();
    expect((await reopen({ directory, clock })).committedSeq).toBe(1);
    await writeFile(join(directory, 'committed'), 'nonsense');
    expect((await reopen({ directory, clock })).committedSeq).toBe(0);
  });

  it('is readable by its owner alone', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([said('a')]);
    const { mode } = await stat(directory);
    expect(mode & 0o077).toBe(0);
  });

  it('takes nothing after it was closed', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.remove();
    await expect(journal.append([said('a')])).rejects.toThrow('closed');
  });

  it('has every frame that a killed process had handed on', async () => {
    const script = `
      import { Journal } from ${JSON.stringify(join(import.meta.dirname, 'journal.ts'))};
      const clock = { wall: () => Date.now(), monotonic: () => performance.now() };
      const journal = await Journal.create({ directory: ${JSON.stringify(directory)}, clock, segmentBytes: 50_000, maxBytes: 1e12 }, { frames: '', lastSeq: 0 });
      journal.onKept = (frames) => process.stdout.write(frames.at(-1).seq + '\\n');
      for (let n = 1; ; n += 1) await journal.append([{ n, frame: { type: 'text_delta', data: 'x'.repeat(3000) } }]);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let handedOn = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      handedOn = Number(line);
      if (handedOn === 150) child.kill('SIGKILL');
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    const journal = await reopen({ directory, clock });
    expect(handedOn).toBeGreaterThanOrEqual(150);
    expect(journal.lastSeq).toBeGreaterThanOrEqual(handedOn);
    expect((await all(journal)).length).toBe(journal.lastSeq);
  });

  it('reads as a list would, whatever is appended, cut and opened again', async () => {
    const step = fc.oneof(
      fc.record({ add: fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { minLength: 1 }) }),
      fc.record({
        reopenWith: fc.string({ maxLength: 20 }).map((text) => text.replaceAll('\n', '')),
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const options = { directory, clock, segmentBytes: 200 };
        let journal = await create(options, NEW);
        const model: string[] = [];
        for (const one of steps) {
          if ('add' in one) {
            await journal.append(one.add.map((data) => said(data)));
            model.push(...one.add);
            continue;
          }
          await journal.close();
          const last = (await readdir(directory)).filter((name) => name.endsWith('.frames'));
          const torn = last.sort().at(-1);
          if (torn !== undefined) await appendFile(join(directory, torn), one.reopenWith);
          journal = await reopen(options);
        }
        const kept = await all(journal, 1);
        expect(words(kept)).toEqual(model.map((data) => data.toWellFormed()));
        expect(kept.map(({ seq }) => seq)).toEqual(model.map((_, index) => index + 1));
        await journal.close();
      }),
      { numRuns: 60 },
    );
  });
});
