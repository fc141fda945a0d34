import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { lockDataDirectory } from './data-lock.ts';
import { servicePaths } from './paths.ts';
import { RecordKeeper, readServiceRecord, runningService } from './service-record.ts';
import { allOrAbort } from './start/all-or-abort.ts';
import { tailFile } from './tail-file.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-cli-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

test('rejects a second service on the same data directory', async () => {
  const paths = servicePaths(directory);
  const lock = await lockDataDirectory(paths);
  await expect(lockDataDirectory(paths)).rejects.toMatchObject({
    code: 'already_running',
    message: expect.stringContaining(String(process.pid)),
  });
  await lock.release();
  const next = await lockDataDirectory(paths);
  await next.release();
});

describe('the service record', () => {
  test('describes the running process, with the fields added later', async () => {
    const { record: file } = servicePaths(directory);
    const keeper = await RecordKeeper.open(file, 'up');
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

  test('is ignored once its process has exited, even if the pid is reused', async () => {
    const { record: file } = servicePaths(directory);
    await RecordKeeper.open(file, 'up');
    const record = JSON.parse(await readFile(file, 'utf8'));
    record.process.startTicks -= 1;
    await writeFile(file, JSON.stringify(record));
    expect(await runningService(file)).toBeUndefined();
    expect(await readServiceRecord(file)).toBeDefined();
  });
});

test('tails a file from its beginning to the last write before the stop', async () => {
  const file = join(directory, 'log');
  await writeFile(file, 'one\n');
  const out = new PassThrough();
  const stop = tailFile(file, out);
  await appendFile(file, 'two\n');
  await stop();
  out.end();
  expect(await text(out)).toBe('one\ntwo\n');
});

describe('two concurrent starts', () => {
  test('reject with the first failure, which aborts the other', async () => {
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
    await expect(allOrAbort(signal, failing, waiting)).rejects.toThrow('no database');
    expect(aborted).toBe(true);
  });

  test('return both results in order', async () => {
    const { signal } = new AbortController();
    expect(
      await allOrAbort(
        signal,
        async () => 1,
        async () => 'two',
      ),
    ).toEqual([1, 'two']);
  });
});
