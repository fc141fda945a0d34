import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeFileAtomic } from './atomic-write.ts';
import { FileLockedError, lockFile } from './file-lock.ts';
import { identityOf, isAlive } from './identity.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-process-'));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

describe('atomic write', () => {
  it('replaces a file, sets its mode, and leaves no other file', async () => {
    const place = await mkdtemp(join(directory, 'atomic-'));
    const path = join(place, 'file');
    await Promise.all(['a', 'b', 'c'].map((text) => writeFileAtomic(path, text.repeat(10_000))));
    await writeFileAtomic(path, 'last', { mode: 0o640 });
    expect(await readFile(path, 'utf8')).toBe('last');
    expect((await stat(path)).mode & 0o777).toBe(0o640);
    expect(await readdir(place)).toEqual(['file']);
  });

  it('leaves no file when it fails', async () => {
    const place = await mkdtemp(join(directory, 'atomic-'));
    await expect(writeFileAtomic(join(place, 'none/file'), 'x')).rejects.toThrow('ENOENT');
    expect(await readdir(place)).toEqual([]);
  });
});

describe('file lock', () => {
  it('has one holder at a time, names it, and can be locked again after a release', async () => {
    const path = join(directory, 'lock-1');
    const lock = await lockFile(path);
    const second = lockFile(path);
    await expect(second).rejects.toThrow(FileLockedError);
    await expect(second).rejects.toMatchObject({ holder: process.pid });
    await lock.release();
    const again = await lockFile(path);
    await again.release();
    await again.release();
  });

  it('is released when its holder is killed', async () => {
    const path = join(directory, 'lock-2');
    const script = `
      import { lockFile } from ${JSON.stringify(new URL('./file-lock.ts', import.meta.url).href)};
      await lockFile(${JSON.stringify(path)});
      console.log('held');
      setInterval(() => undefined, 1000);`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(holder.stdout, 'data');
    await expect(lockFile(path)).rejects.toMatchObject({ holder: holder.pid });
    // The process that holds it for the dead one notices late.
    const children = await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8');
    const child = Number.parseInt(children, 10);
    process.kill(child, 'SIGSTOP');
    const exited = once(holder, 'exit');
    holder.kill('SIGKILL');
    await exited;
    const locking = lockFile(path);
    process.kill(child, 'SIGCONT');
    const lock = await locking;
    await lock.release();
  });

  it('reports why locking fails', async () => {
    await expect(lockFile(join(directory, 'none/lock'))).rejects.toThrow('cannot lock');
  });
});

describe('process identity', () => {
  it('distinguishes processes with the same pid', async () => {
    const self = await identityOf(process.pid);
    if (self === undefined) throw new Error('this process has no identity');
    expect(await isAlive(self)).toBe(true);
    expect(await isAlive({ ...self, startTicks: self.startTicks + 1 })).toBe(false);
    expect(await isAlive({ ...self, bootId: 'another' })).toBe(false);
  });

  it('is undefined once the process is dead', async () => {
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    const identity = await identityOf(child.pid ?? 0);
    if (identity === undefined) throw new Error('the child has no identity');
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await isAlive(identity)).toBe(false);
    expect(await identityOf(identity.pid)).toBeUndefined();
  });
});
