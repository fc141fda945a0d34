import { chown, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ProcessContext, runProcess, startProcess } from './index.ts';

let home: string;
let ending: AbortController;
let context: ProcessContext;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-processes-'));
  ending = new AbortController();
  const env = () => ({ PATH: '/usr/bin:/bin', HOME: home, GREETING: 'hello' });
  context = { home, workingDirectory: home, env, signal: ending.signal };
});
afterEach(async () => {
  ending.abort();
  await rm(home, { recursive: true, force: true });
});

async function run(script: string, options: Partial<Parameters<typeof runProcess>[2]> = {}) {
  const seen = { stdout: '', stderr: '' };
  const request = { command: 'bash', args: ['-c', script] };
  const onOutput = (output: 'stdout' | 'stderr', text: string) => {
    seen[output] += text;
  };
  const result = await runProcess(context, request, { onOutput, ...options });
  return { ...seen, ...result };
}

function isAlive(pid: number): Promise<boolean> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX] /.test(stat),
    () => false,
  );
}

async function pidIn(file: string): Promise<number> {
  await expect.poll(() => readFile(join(home, file), 'utf8').catch(() => '')).toMatch(/\d+\n/);
  return Number(await readFile(join(home, file), 'utf8'));
}

describe('a process that is waited for', () => {
  test('has its outputs apart, its exit code, the directory and the environment', async () => {
    expect(await run('echo "$GREETING"; pwd; echo bad >&2; cat; exit 7', { input: 'in' })).toEqual({
      stdout: `hello\n${home}\nin`,
      stderr: 'bad\n',
      exitCode: 7,
      ended: 'exited',
    });
  });

  test('sees nothing of our own environment', async () => {
    process.env.SVC_TEST_SECRET = 'secret';
    const { stdout } = await run('env');
    delete process.env.SVC_TEST_SECRET;
    expect(stdout).not.toContain('secret');
    expect(stdout).toContain('GREETING=hello');
  });

  test('that ends by a signal has 128 and its number', async () => {
    expect(await run('kill -9 $$')).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
  });

  test('that cannot be started says so', async () => {
    const started = runProcess(context, { command: 'nowhere' }, { onOutput: () => undefined });
    await expect(started).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('is delivered in whole characters', async () => {
    const pieces: string[] = [];
    const text = '€'.repeat(100_000);
    await run('cat', {
      input: text,
      onOutput: (_output, piece) => {
        pieces.push(piece);
      },
    });
    expect(pieces.join('')).toBe(text);
    expect(pieces.every((piece) => !piece.includes('\ufffd'))).toBe(true);
  });

  test('stands still while its reader does, and nothing is lost', async () => {
    let length = 0;
    const result = await run('head -c 500000 /dev/zero; head -c 300 /dev/zero', {
      onOutput: async (_output, text) => {
        length += text.length;
        await sleep(length > 499_000 ? 600 : 1);
      },
    });
    expect(result.exitCode).toBe(0);
    expect(length).toBe(500_300);
  });

  test('returns though what it left in the background holds its output', async () => {
    expect(await run('sleep 60 & echo $! >pid; echo done')).toMatchObject({ stdout: 'done\n' });
    expect(await isAlive(await pidIn('pid'))).toBe(true);
  });

  test('returns though what it left in the background goes on writing', async () => {
    const { exitCode } = await run('while :; do echo more; sleep 0.05; done & exit 3');
    expect(exitCode).toBe(3);
  });

  test.each(['aborted', 'timeout'] as const)('is killed with its group: %s', async (how) => {
    const abort = new AbortController();
    const running = run('sleep 60 & echo $! >pid; wait', {
      signal: abort.signal,
      ...(how === 'timeout' ? { timeoutMs: 3_000 } : {}),
    });
    const pid = await pidIn('pid');
    if (how === 'aborted') abort.abort();
    expect(await running).toMatchObject({ ended: how, exitCode: 137 });
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test('is not started when it is aborted already', async () => {
    expect(await run('touch here', { signal: AbortSignal.abort() })).toMatchObject({
      ended: 'aborted',
    });
    await expect(readFile(join(home, 'here'))).rejects.toThrow();
  });

  test('ends when its reader fails', async () => {
    const running = run('while :; do echo more; done', {
      onOutput: () => {
        throw new Error('enough');
      },
    });
    await expect(running).rejects.toThrow('enough');
  });
});

describe('a process that is talked to', () => {
  test('answers, and tells that it ended', async () => {
    const child = await startProcess(context, { command: 'cat' });
    child.stderr.resume();
    child.stdin.write('one\n');
    const [line] = await child.stdout.setEncoding('utf8').take(1).toArray();
    expect(line).toBe('one\n');
    child.stdin.end();
    expect(await child.exited).toEqual({ exitCode: 0 });
  });

  test('that has ended takes input and signals without harm', async () => {
    const child = await startProcess(context, { command: 'true' });
    await child.exited;
    child.stdin.write('late');
    child.kill();
    child.kill('SIGINT');
  });

  test('ends with the runtime, and what it left in the background too', async () => {
    const child = await startProcess(context, {
      command: 'bash',
      args: ['-c', 'sleep 60 & echo $! >pid'],
    });
    await child.exited;
    const pid = await pidIn('pid');
    ending.abort();
    await expect.poll(() => isAlive(pid)).toBe(false);
    await expect(startProcess(context, { command: 'true' })).rejects.toThrow();
  });
});

test('runs as the owner of the home directory', async () => {
  await chown(home, 65534, 65534);
  expect((await run('id -u; id -G')).stdout).toBe('65534\n65534\n');
});
