import { expect, test } from 'vitest';
import { useSandbox } from '../../test/test-sandbox.ts';

const sandbox = useSandbox();

/** Runs a command as the user of the agents. Returns its output; fails unless the exit code is 0. */
async function asAgent(command: string): Promise<string> {
  const { output, exit_code } = await sandbox().exec({
    command: 'exec su --login agent --command "$COMMAND"',
    env: { COMMAND: command },
    timeout_seconds: 590,
  });
  expect(exit_code, `${command}\n${output}`).toBe(0);
  return output.trim();
}

test('the tools that coding agents use answer their versions', async () => {
  const commands = [
    ...['cc --version', 'c++ --version', 'make --version', 'ld --version', 'pkg-config --version'],
    ...[
      'python3 --version',
      'python --version',
      'pip --version',
      'node --version',
      'npm --version',
    ],
    ...[
      'git --version',
      'rg --version',
      'fd --version',
      'jq --version',
      'tmux -V',
      'vim --version',
    ],
    ...['sudo --version', 'apt-get --version', 'curl --version'],
  ];
  const failed = 'FAILED';
  const lines = commands.map(
    (command) => `(${command}) 2>&1 | grep -m1 '[0-9]' || echo ${failed}: ${command}`,
  );
  const answers = (await asAgent(lines.join('\n'))).split('\n');
  expect(answers.filter((line) => line.includes(failed))).toEqual([]);
  expect(answers).toHaveLength(commands.length);
});

test('a C program compiles with make and runs', async () => {
  await asAgent(`mkdir -p ~/c && cd ~/c
    printf '%s\\n' '#include <math.h>' '#include <stdio.h>' \\
      'int main(void) { printf("%.0f", sqrt(1764)); return 0; }' >answer.c
    make LDLIBS=-lm answer`);
  expect(await asAgent('~/c/answer')).toBe('42');
});

test('a Python environment is made with pip', { timeout: 600_000 }, async () => {
  const version = await asAgent('python3 -m venv ~/venv && ~/venv/bin/pip --version');
  expect(version).toContain('/home/agent/venv/');
});

test('the user agent becomes root with sudo, without a password', async () => {
  expect(await asAgent('sudo -n true && sudo -n id -u')).toBe('0');
});

test('a terminal session starts in tmux', async () => {
  await asAgent('tmux new-session -d -s work "echo inside >~/tmux-says"');
  await expect.poll(() => asAgent('cat ~/tmux-says 2>/dev/null || true')).toBe('inside');
});
