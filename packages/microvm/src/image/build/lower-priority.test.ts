import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { getPriority } from 'node:os';
import { expect, test } from 'vitest';
import { lowerPriority } from './lower-priority.ts';

test('lowers the priority of every thread of a process', async () => {
  const child = spawn(process.execPath, ['-e', 'console.log(1); setInterval(() => {}, 1000)']);
  try {
    await once(child.stdout, 'data');
    const pid = child.pid ?? 0;
    await lowerPriority(pid);
    const { readdir } = await import('node:fs/promises');
    const threads = await readdir(`/proc/${pid}/task`);
    expect(threads.length).toBeGreaterThan(1);
    for (const thread of threads) expect(getPriority(Number(thread))).toBe(19);
  } finally {
    child.kill('SIGKILL');
  }
});
