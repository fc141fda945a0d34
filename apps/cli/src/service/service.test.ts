import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { followFile } from './follow-file.ts';
import { servicePlaces } from './places.ts';
import { RecordKeeper, readServiceRecord, runningService } from './service-record.ts';
import { lockDataDirectory } from './start/data-lock.ts';
import { together } from './start/together.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cli-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

test('one data directory has one service, and a second start says so', async () => {
  const places = servicePlaces(directory);
  const lock = await lockDataDirectory(places);
  await expect(lockDataDirectory(places)).rejects.toMatchObject({
    code: 'already_running',
    message: expect.stringContaining(String(process.pid)),
  });
  await lock.release();
  const next = await lockDataDirectory(places);
  await next.release();
});

describe('the record of a service', () => {
  test('shows the running process, and what it adds', async () => {
    const { record: file } = servicePlaces(directory);
    const keeper = await RecordKeeper.open(file);
    expect(await runningService(file)).toMatchObject({ state: 'starting' });
    await keeper.update({ state: 'ready', base_url: 'https://localhost:8443' });
    expect(await runningService(file)).toMatchObject({
      state: 'ready',
      base_url: 'https://localhost:8443',
      process: { pid: process.pid },
    });
    await keeper.remove();
    expect(await readServiceRecord(file)).toBeUndefined();
  });

  test('of a process that is gone does not count, though its pid is used again', async () => {
    const { record: file } = servicePlaces(directory);
    await RecordKeeper.open(file);
    const record = JSON.parse(await readFile(file, 'utf8'));
    record.process.startTicks -= 1;
    await writeFile(file, JSON.stringify(record));
    expect(await runningService(file)).toBeUndefined();
    expect(await readServiceRecord(file)).toBeDefined();
  });
});

test('a followed file is shown from its beginning to what was written last', async () => {
  const file = join(directory, 'log');
  await writeFile(file, 'one\n');
  const out = new PassThrough();
  const stop = followFile(file, out);
  await appendFile(file, 'two\n');
  await stop();
  out.end();
  expect(await text(out)).toBe('one\ntwo\n');
});

describe('two starts side by side', () => {
  test('a failure aborts the other and is the one reported', async () => {
    let aborted = false;
    const waiting = (signal: AbortSignal) =>
      new Promise<void>((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(new Error('aborted'));
        });
      });
    const failing = () => Promise.reject(new Error('no database'));
    const { signal } = new AbortController();
    await expect(together(signal, failing, waiting)).rejects.toThrow('no database');
    expect(aborted).toBe(true);
  });

  test('both results come in order', async () => {
    const { signal } = new AbortController();
    expect(
      await together(
        signal,
        async () => 1,
        async () => 'two',
      ),
    ).toEqual([1, 'two']);
  });
});
