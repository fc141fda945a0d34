import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, mkdtemp, readdir, rm, rmdir, stat, writeFile } from 'node:fs/promises';
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

const ignore = () => undefined;

function textFrame(data: string, n = 0): NewFrame {
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

describe('Journal', () => {
  it('numbers frames, and has them on disk before it shows them', async () => {
    const journal = await create({ directory, clock }, NEW);
    const shown: { texts: string[]; onDisk: Promise<StoredFrame[]> }[] = [];
    const show = (frames: readonly StoredFrame[]) => {
      const onDisk = reopen({ directory, clock }).then((other) => all(other));
      shown.push({ texts: frames.map(({ text }) => text), onDisk });
    };
    await journal.append([textFrame('a', 1), textFrame('b', 2)], show);
    await journal.append([textFrame('c', 3)], show);
    for (const { texts, onDisk } of shown) {
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

  it('continues the numbering of a resumed session', async () => {
    const first = await create({ directory, clock }, NEW);
    await first.append([textFrame('a'), textFrame('b')], ignore);
    const frames = (await all(first)).map(({ text }) => `${text}\n`).join('');
    const second = await create({ directory, clock }, { frames, lastSeq: 5 });
    expect([second.lastSeq, second.firstSeq, second.committedSeq, second.lastN]).toEqual([
      5, 1, 5, 0,
    ]);
    await second.append([textFrame('c')], ignore);
    expect((await all(second)).map(({ seq }) => seq)).toEqual([1, 2, 6]);
  });

  it('ignores lines of a history that are not frames', async () => {
    const frames = 'nonsense\n{"type":"x","seq":3}\n{"a":1,"seq":2,"ts":"t"}\n';
    const journal = await create({ directory, clock }, { frames, lastSeq: 9 });
    await journal.append([textFrame('c')], ignore);
    expect((await all(journal, 3)).map(({ seq }) => seq)).toEqual([10]);
  });

  it('truncates the partial line of a killed process', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([textFrame('a', 1), { n: 2, frame: { type: 'task_started' } }], ignore);
    await journal.close();
    const [name = ''] = (await readdir(directory)).filter((one) => one.endsWith('.frames'));
    await appendFile(join(directory, name), '3 {"type":"text_delta","data":"half of');
    const again = await reopen({ directory, clock });
    expect([again.lastSeq, again.lastN, again.taskRunning]).toEqual([2, 2, true]);
    await again.append([textFrame('b', 3)], ignore);
    expect((await all(again)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(words(await all(await reopen({ directory, clock })))[2]).toBe('b');
  });

  it('keeps the newest frames within its size limit, and knows the first of them', async () => {
    const options = { directory, clock, maxBytes: 20_000, segmentBytes: 2_000 };
    const journal = await create(options, NEW);
    for (let index = 0; index < 100; index += 1)
      await journal.append([textFrame('x'.repeat(1_000))], ignore);
    const kept = await all(journal);
    expect(journal.firstSeq).toBeGreaterThan(70);
    expect(kept.map(({ seq }) => seq)).toEqual(
      Array.from({ length: kept.length }, (_, index) => journal.firstSeq + index),
    );
    expect(kept.length).toBeGreaterThanOrEqual(19);
    expect((await journal.read(1))[0]?.seq).toBe(journal.firstSeq);
  });

  it('knows after a restart whether a task runs, though the frames that tell have been dropped', async () => {
    const options = { directory, clock, maxBytes: 20_000, segmentBytes: 2_000 };
    const [started, completed]: NewFrame[] = [
      { n: 1, frame: { type: 'task_started' } },
      { n: 2, frame: { type: 'task_completed', status: 'completed', result: '' } },
    ];
    let journal = await create(options, NEW);
    for (const [frame, isRunning] of [
      [started, true],
      [completed, false],
      [started, true],
    ] as const) {
      if (frame !== undefined) await journal.append([frame], ignore);
      const { lastSeq } = journal;
      for (let index = 0; index < 40; index += 1)
        await journal.append([textFrame('x'.repeat(1_000))], ignore);
      expect(journal.firstSeq).toBeGreaterThan(lastSeq);
      await journal.close();
      journal = await reopen(options);
      expect(journal.taskRunning).toBe(isRunning);
    }
  });

  it('takes no task of an earlier start of the session for running', async () => {
    const first = await create({ directory, clock }, NEW);
    await first.append([{ n: 1, frame: { type: 'task_started' } }], ignore);
    expect(first.taskRunning).toBe(true);
    const frames = (await all(first)).map(({ text }) => `${text}\n`).join('');
    const second = await create({ directory, clock }, { frames, lastSeq: 1 });
    expect(second.taskRunning).toBe(false);
    await second.close();
    expect((await reopen({ directory, clock })).taskRunning).toBe(false);
  });

  it('stores nothing when it cannot record what dropped frames say', async () => {
    const options = { directory, clock, maxBytes: 2_000, segmentBytes: 1_000 };
    const journal = await create(options, NEW);
    await journal.append([{ n: 1, frame: { type: 'task_started' } }], ignore);
    // A full disk refuses the record likewise.
    await mkdir(join(directory, 'task-running'));
    const append = async () => {
      for (let index = 0; index < 9; index += 1)
        await journal.append([textFrame('x'.repeat(1_000))], ignore);
    };
    await expect(append()).rejects.toThrow();
    expect((await all(journal, 1)).length).toBe(journal.lastSeq);
    await rmdir(join(directory, 'task-running'));
    await append();
    await journal.close();
    expect((await reopen(options)).taskRunning).toBe(true);
  });

  it('shows no frame that it could not write, and leaves no gap in the numbers after it', async () => {
    const journal = await create({ directory, clock, segmentBytes: 1 }, NEW);
    await journal.append([textFrame('a')], ignore);
    const shown: number[] = [];
    const show = (frames: readonly StoredFrame[]) => {
      shown.push(...frames.map(({ seq }) => seq));
    };
    await rm(directory, { recursive: true });
    await expect(journal.append([textFrame('b')], show)).rejects.toThrow();
    expect([shown, journal.lastSeq]).toEqual([[], 1]);
    await create({ directory, clock }, NEW);
    await journal.append([textFrame('c')], show);
    expect(shown).toEqual([2]);
  });

  it('remembers the last committed number across a restart', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([textFrame('a'), textFrame('b')], ignore);
    await journal.noteCommitted(1);
    await journal.close();
    expect((await reopen({ directory, clock })).committedSeq).toBe(1);
    await writeFile(join(directory, 'committed'), 'nonsense');
    expect((await reopen({ directory, clock })).committedSeq).toBe(0);
  });

  it('is accessible to its owner only', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.append([textFrame('a')], ignore);
    const { mode } = await stat(directory);
    expect(mode & 0o077).toBe(0);
  });

  it('rejects frames after it was closed', async () => {
    const journal = await create({ directory, clock }, NEW);
    await journal.remove();
    await expect(journal.append([textFrame('a')], ignore)).rejects.toThrow('closed');
  });

  it('has every frame that a killed process had shown', async () => {
    const script = `
      import { Journal } from ${JSON.stringify(join(import.meta.dirname, 'journal.ts'))};
      const clock = { wall: () => Date.now(), monotonic: () => performance.now() };
      const journal = await Journal.create({ directory: ${JSON.stringify(directory)}, clock, segmentBytes: 50_000, maxBytes: 1e12 }, { frames: '', lastSeq: 0 });
      const show = (frames) => process.stdout.write(frames.at(-1).seq + '\\n');
      for (let n = 1; ; n += 1) await journal.append([{ n, frame: { type: 'text_delta', data: 'x'.repeat(3000) } }], show);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let shown = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      shown = Number(line);
      if (shown === 150) child.kill('SIGKILL');
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    const journal = await reopen({ directory, clock });
    expect(shown).toBeGreaterThanOrEqual(150);
    expect(journal.lastSeq).toBeGreaterThanOrEqual(shown);
    expect((await all(journal)).length).toBe(journal.lastSeq);
  });

  it('reads like a list after any sequence of appends, torn writes and reopenings', async () => {
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
            await journal.append(
              one.add.map((data) => textFrame(data)),
              ignore,
            );
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
