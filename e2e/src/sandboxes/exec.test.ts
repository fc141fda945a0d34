import { DEFAULT_LIMITS, ExecResponse, LIMITS } from '@svc/contract';
import { until } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { expectValid } from '../../test/assertions.ts';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox({ env_vars: { FROM_CREATE: 'create', BOTH: 'create' } });

/** Whether the guest has a process whose command line contains a text. */
const isRunning = async (mark: string) => {
  // The character class keeps pgrep from finding itself.
  const { exit_code } = await sandbox().exec(`pgrep -f '[${mark[0]}]${mark.slice(1)}'`);
  return exit_code === 0;
};

test('returns the output, the exit code and the duration of a command', async () => {
  const answer = await sandbox().exec('exec 2>&1; echo out; echo err >&2; echo more');
  expectValid(ExecResponse, answer);
  expect(answer).toMatchObject({ output: 'out\nerr\nmore\n', exit_code: 0, truncated: false });
  expect(answer.duration_ms).toBeGreaterThan(0);
});

test('returns stdout and stderr together, as they arrive, and apart', async () => {
  const answer = await sandbox().exec('echo out; sleep 1; echo err >&2; sleep 1; echo more');
  expect(answer).toMatchObject({
    output: 'out\nerr\nmore\n',
    stdout: 'out\nmore\n',
    stderr: 'err\n',
  });
});

test.each([
  ['exit 3', 3],
  ['no-such-program', 127],
  ['kill -9 $$', 137],
  ['kill -TERM $$', 143],
])('%s answers 200 with exit code %i', async (command, exitCode) => {
  expect(await sandbox().exec(command)).toMatchObject({ exit_code: exitCode });
});

test('returns text in any script unchanged, and replaces bytes that are not UTF-8', async () => {
  const text = 'naïve 日本語 🚀 "quoted" \\ $HOME `x`';
  const { output } = await sandbox().exec({ command: 'printf %s "$TEXT"', env: { TEXT: text } });
  expect(output).toBe(text);
  const binary = await sandbox().exec("printf 'a\\377\\376\\000b'");
  expect(binary.output).toBe('a\ufffd\ufffd\u0000b');
});

test('runs a long command of many lines', async () => {
  const lines = Array.from(
    { length: 1000 },
    (_, n) => `echo "line ${n}" >/dev/null # ${'x'.repeat(80)}`,
  );
  const command = [...lines, 'echo done'].join('\n');
  expect(command.length).toBeLessThan(LIMITS.commandChars);
  expect(await sandbox().run(command)).toBe('done');
});

test('cwd and env apply to one command only, and its variables take precedence', async () => {
  const answer = await sandbox().exec({
    command: 'pwd; echo "$FROM_CREATE $BOTH $ONLY_HERE"; cd /; export LOST=1',
    cwd: '/usr/lib',
    env: { BOTH: 'exec', ONLY_HERE: "it's here" },
  });
  expect(answer.output).toBe("/usr/lib\ncreate exec it's here\n");
  expect(await sandbox().run('echo "$BOTH $ONLY_HERE $LOST"')).toBe('create');
});

test.each(['/no/such/place', '/etc/passwd'])('rejects the working directory %s', async (cwd) => {
  const call = sandbox().exec({ command: 'touch /tmp/ran', cwd });
  await expect(call).rejects.toMatchObject({ status: 400, code: 'cwd_not_found' });
  await sandbox().run('test ! -e /tmp/ran');
});

test('standard input is empty', async () => {
  expect(await sandbox().exec('cat; read line || echo none')).toMatchObject({ output: 'none\n' });
});

test('timeout_seconds ends the command and every process that it started', async () => {
  const answer = await sandbox().exec({
    command: 'echo begun; (setsid sleep 7001 &) ; sleep 7002 & sleep 7003',
    // Long enough for all of them to start on a loaded machine.
    timeout_seconds: 4.5,
  });
  expect(answer).toMatchObject({ output: 'begun\n', exit_code: 124, timed_out: true });
  expect(answer.duration_ms).toBeGreaterThanOrEqual(4500);
  for (const mark of ['sleep 7001', 'sleep 7002', 'sleep 7003']) {
    await until(`${mark} is gone`, async () => !(await isRunning(mark)));
  }
});

test('a caller that disconnects ends the command and every process that it started', async () => {
  const leaving = new AbortController();
  const call = sandbox().exec(
    {
      command:
        '(setsid sleep 8001 &); (sleep 8002 | cat) & trap "" TERM HUP INT; sleep 8003; sleep 8004',
    },
    { signal: leaving.signal },
  );
  const outcome = call.then(
    () => 'answered',
    () => 'aborted',
  );
  await until('the command runs', () => isRunning('sleep 8003'));
  leaving.abort();
  expect(await outcome).toBe('aborted');
  for (const mark of ['sleep 8001', 'sleep 8002', 'sleep 8003', 'sleep 8004']) {
    await until(`${mark} is gone`, async () => !(await isRunning(mark)));
  }
});

test('a timeout also ends a shell that starts no process', async () => {
  const loop = { command: ': mark-5001; while :; do :; done', timeout_seconds: 1 };
  expect(await sandbox().exec(loop)).toMatchObject({ exit_code: 124, timed_out: true });
  await until('the shell is gone', async () => !(await isRunning('mark-5001')), {
    deadlineMs: 20_000,
  });
});

test('a background process that has closed its output does not delay the answer, and survives it', async () => {
  const answer = await sandbox().exec('nohup sleep 9001 >/dev/null 2>&1 & echo started');
  expect(answer.output).toBe('started\n');
  expect(await isRunning('sleep 9001')).toBe(true);
  await sandbox().exec("pkill -f '[s]leep 9001'");
});

test('concurrent commands do not mix their output', async () => {
  const numbers = Array.from({ length: 8 }, (_, n) => n);
  const answers = await Promise.all(
    numbers.map((n) => sandbox().exec(`for i in 1 2 3; do echo ${n}; done; exit ${n}`)),
  );
  for (const n of numbers) {
    expect(answers[n]).toMatchObject({ output: `${n}\n`.repeat(3), exit_code: n });
  }
});

test('output beyond 10 MiB is dropped and reported as truncated, and the command runs to completion', async () => {
  const bytes = LIMITS.execOutputBytes + 1_000_000;
  const { output, ...rest } = await sandbox().exec(
    `head -c ${bytes} /dev/zero | tr '\\0' x; touch /tmp/ended; exit 5`,
  );
  expect(rest).toMatchObject({ truncated: true, exit_code: 5 });
  expect(output.length).toBe(LIMITS.execOutputBytes);
  expect(/^x+$/.test(output)).toBe(true);
  await sandbox().run('test -e /tmp/ended');
});

test('refuses commands over the limit of an account, and the others keep running', async () => {
  const leaving = new AbortController();
  let refused = 0;
  const held = Array.from({ length: DEFAULT_LIMITS.operationsPerTenant + 2 }, () =>
    sandbox()
      .exec('sleep 600', { signal: leaving.signal })
      .then(
        () => 'answered',
        (error: { code?: string }) => {
          if (error.code === 'too_many_operations') refused += 1;
          return error.code ?? 'aborted';
        },
      ),
  );
  await until('two commands are refused', async () => refused === 2);
  leaving.abort();
  const outcomes = new Set(await Promise.all(held));
  expect(outcomes).not.toContain('answered');
  expect(refused).toBe(2);
  await until('the sandbox accepts commands again', async () => {
    const answer = await sandbox()
      .exec('echo again')
      .catch(() => undefined);
    return answer?.output === 'again\n';
  });
});
