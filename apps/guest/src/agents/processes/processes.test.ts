import { chown, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type ExpectStatic, test } from 'vitest';
import { type ProcessContext, type RunOptions, runProcess, startProcess } from './index.ts';

/** A home directory for processes, which end when it is disposed of. */
interface Home extends AsyncDisposable {
  readonly path: string;
  readonly context: ProcessContext;
  readonly ending: AbortController;
  /** Runs a bash script and collects its output. */
  run(script: string, options?: Partial<RunOptions>): ReturnType<typeof collect>;
}

async function createHome(): Promise<Home> {
  const path = await mkdtemp(join(tmpdir(), 'svc-processes-'));
  const ending = new AbortController();
  const env = () => ({ PATH: '/usr/bin:/bin', HOME: path, GREETING: 'hello' });
  const context = { home: path, workingDirectory: path, env, signal: ending.signal };
  return {
    path,
    context,
    ending,
    run: (script, options = {}) => collect(context, script, options),
    [Symbol.asyncDispose]: async () => {
      ending.abort();
      await rm(path, { recursive: true, force: true });
    },
  };
}

async function collect(context: ProcessContext, script: string, options: Partial<RunOptions>) {
  const output = { stdout: '', stderr: '' };
  const request = { command: 'bash', args: ['-c', script] };
  const onOutput = (name: 'stdout' | 'stderr', text: string) => {
    output[name] += text;
  };
  const result = await runProcess(context, request, { onOutput, ...options });
  return { ...output, ...result };
}

function isAlive(pid: number): Promise<boolean> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX] /.test(stat),
    () => false,
  );
}

/** The process id in the file `pid`, once it has been written. */
async function writtenPid(home: Home, expect: ExpectStatic): Promise<number> {
  const file = join(home.path, 'pid');
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).toMatch(/\d+\n/);
  return Number(await readFile(file, 'utf8'));
}

// Several of them wait for time limits.
describe.concurrent('runProcess', () => {
  test('returns both outputs and the exit code, and passes directory, environment and input', async ({
    expect,
  }) => {
    await using home = await createHome();
    const script = 'echo "$GREETING"; pwd; echo bad >&2; cat; exit 7';
    expect(await home.run(script, { input: 'in' })).toEqual({
      stdout: `hello\n${home.path}\nin`,
      stderr: 'bad\n',
      exitCode: 7,
      ended: 'exited',
    });
  });

  test('does not pass the environment of the runtime', async ({ expect }) => {
    await using home = await createHome();
    process.env.SVC_TEST_SECRET = 'secret';
    const { stdout } = await home.run('env');
    delete process.env.SVC_TEST_SECRET;
    expect(stdout).not.toContain('secret');
    expect(stdout).toContain('GREETING=hello');
  });

  test('returns 128 plus the number of the signal that ended the process', async ({ expect }) => {
    await using home = await createHome();
    expect(await home.run('kill -9 $$')).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
  });

  test('rejects when the program cannot be started', async ({ expect }) => {
    await using home = await createHome();
    const started = runProcess(home.context, { command: 'nowhere' }, { onOutput: () => undefined });
    await expect(started).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('delivers whole characters', async ({ expect }) => {
    await using home = await createHome();
    const pieces: string[] = [];
    const text = '€'.repeat(100_000);
    await home.run('cat', {
      input: text,
      onOutput: (_output, piece) => {
        pieces.push(piece);
      },
    });
    expect(pieces.join('')).toBe(text);
    expect(pieces.every((piece) => !piece.includes('\ufffd'))).toBe(true);
  });

  test('waits for a slow consumer without losing output', async ({ expect }) => {
    await using home = await createHome();
    let length = 0;
    const result = await home.run('head -c 500000 /dev/zero; head -c 300 /dev/zero', {
      onOutput: async (_output, text) => {
        length += text.length;
        await sleep(length > 499_000 ? 600 : 1);
      },
    });
    expect(result.exitCode).toBe(0);
    expect(length).toBe(500_300);
  });

  test('returns although a background process holds the output open', async ({ expect }) => {
    await using home = await createHome();
    expect(await home.run('sleep 60 & echo $! >pid; echo done')).toMatchObject({
      stdout: 'done\n',
    });
    expect(await isAlive(await writtenPid(home, expect))).toBe(true);
  });

  test('returns although a background process keeps writing', async ({ expect }) => {
    await using home = await createHome();
    const { exitCode } = await home.run('while :; do echo more; sleep 0.05; done & exit 3');
    expect(exitCode).toBe(3);
  });

  test.for(['aborted', 'timeout'] as const)(
    'kills the whole group when %s',
    async (how, { expect }) => {
      await using home = await createHome();
      const abort = new AbortController();
      const running = home.run('sleep 60 & echo $! >pid; wait', {
        signal: abort.signal,
        ...(how === 'timeout' ? { timeoutMs: 3_000 } : {}),
      });
      const pid = await writtenPid(home, expect);
      if (how === 'aborted') abort.abort();
      expect(await running).toMatchObject({ ended: how, exitCode: 137 });
      await expect.poll(() => isAlive(pid)).toBe(false);
    },
  );

  test('starts nothing when it is already aborted', async ({ expect }) => {
    await using home = await createHome();
    expect(await home.run('touch here', { signal: AbortSignal.abort() })).toMatchObject({
      ended: 'aborted',
    });
    await expect(readFile(join(home.path, 'here'))).rejects.toThrow();
  });

  test('ends the process when the consumer throws', async ({ expect }) => {
    await using home = await createHome();
    const running = home.run('while :; do echo more; done', {
      onOutput: () => {
        throw new Error('enough');
      },
    });
    await expect(running).rejects.toThrow('enough');
  });

  test('runs as the owner of the home directory', async ({ expect }) => {
    await using home = await createHome();
    await chown(home.path, 65534, 65534);
    expect((await home.run('id -u; id -G')).stdout).toBe('65534\n65534\n');
  });
});

describe.concurrent('startProcess', () => {
  test('exchanges input and output, and reports the exit', async ({ expect }) => {
    await using home = await createHome();
    const child = await startProcess(home.context, { command: 'cat' });
    child.stderr.resume();
    child.stdin.write('one\n');
    const [line] = await child.stdout.setEncoding('utf8').take(1).toArray();
    expect(line).toBe('one\n');
    child.stdin.end();
    expect(await child.exited).toEqual({ exitCode: 0 });
  });

  test('ignores input and signals after the exit', async () => {
    await using home = await createHome();
    const child = await startProcess(home.context, { command: 'true' });
    await child.exited;
    child.stdin.write('late');
    child.kill();
    child.kill('SIGINT');
  });

  test('ends with the runtime, including background processes', async ({ expect }) => {
    await using home = await createHome();
    const child = await startProcess(home.context, {
      command: 'bash',
      args: ['-c', 'sleep 60 & echo $! >pid'],
    });
    await child.exited;
    const pid = await writtenPid(home, expect);
    home.ending.abort();
    await expect.poll(() => isAlive(pid)).toBe(false);
    await expect(startProcess(home.context, { command: 'true' })).rejects.toThrow();
  });
});
