import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { identityOf } from '@svc/service-kit/process';
import { afterEach, beforeEach, expect, test } from 'vitest';

const SCRIPT = fileURLToPath(new URL('bootstrap.sh', import.meta.url));
/** The programs that the script itself calls; the test provides stand-ins for all others. */
const TOOLS = [
  ...['sh', 'cat', 'cut', 'date', 'dirname', 'flock', 'grep', 'id', 'mkdir', 'mktemp', 'paste'],
  ...['rm', 'sed', 'setsid', 'sha256sum', 'sleep', 'sort', 'tail', 'tr', 'chmod', 'cp'],
];

const ANSWER_VERSION = 'if [ "$1" = --version ]; then echo 11.0.0; exit; fi';

let checkout: string;

/** A checkout with the script, a lock file and two host packages, on a machine without any of them. */
beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'svc-bootstrap-'));
  await mkdir(join(checkout, 'scripts'));
  await mkdir(join(checkout, 'bin'));
  await cp(SCRIPT, join(checkout, 'scripts/bootstrap.sh'));
  await writeFile(
    join(checkout, 'scripts/host-packages.txt'),
    '# comment\nalpha svc-alpha\nbeta svc-beta\n',
  );
  await writeFile(join(checkout, 'package-lock.json'), '{"one":1}');
  for (const tool of TOOLS) {
    const { stdout } = await promisify(execFile)('sh', ['-c', `command -v ${tool}`]);
    await symlink(stdout.trim(), join(checkout, 'bin', tool));
  }
  await install(
    'npm',
    `${ANSWER_VERSION}; mkdir -p node_modules/node/bin; cp "$(command -v sh)" node_modules/node/bin/node`,
  );
});

afterEach(async () => {
  await rm(checkout, { recursive: true, force: true });
});

/** Adds a program that records its arguments and then runs `script`. */
async function install(name: string, script: string): Promise<void> {
  const file = join(checkout, 'bin', name);
  await writeFile(file, `#!/bin/sh\necho "${name} $*" >>'${checkout}/calls'\n${script}\n`);
  await chmod(file, 0o755);
}

/** Adds a stand-in for apt-get whose `install` creates the programs of the packages. */
async function installAptGet(): Promise<void> {
  const make = `printf '#!/bin/sh\\n' >'${checkout}/bin/svc-'$word; chmod +x '${checkout}/bin/svc-'$word`;
  await install('apt-get', `for word in "$@"; do case $word in alpha|beta) ${make};; esac; done`);
}

function environment() {
  return { env: { PATH: join(checkout, 'bin'), TMPDIR: tmpdir() } };
}

async function bootstrap(...options: string[]): Promise<{ code: number; errors: string }> {
  const script = join(checkout, 'scripts/bootstrap.sh');
  const run = promisify(execFile)('/bin/sh', [script, ...options], environment());
  return run.then(
    ({ stderr }) => ({ code: 0, errors: stderr }),
    (error: { code: number; stderr: string }) => ({ code: error.code, errors: error.stderr }),
  );
}

async function calls(program: string): Promise<string[]> {
  const text = await readFile(join(checkout, 'calls'), 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${program} `) && !line.includes('--version'));
}

test('installs the missing packages, and nothing the second time', async () => {
  await installAptGet();
  expect(await bootstrap()).toMatchObject({ code: 0 });
  expect(await calls('npm')).toHaveLength(1);
  expect((await calls('apt-get')).at(-1)).toMatch(/install --no-install-recommends alpha beta$/);
  const before = await readFile(join(checkout, 'calls'), 'utf8');
  expect(await bootstrap()).toEqual({ code: 0, errors: '' });
  expect(await readFile(join(checkout, 'calls'), 'utf8')).toBe(before);
});

test('installs the npm packages again when the lock file has changed', async () => {
  await installAptGet();
  await bootstrap();
  await writeFile(join(checkout, 'package-lock.json'), '{"two":2}');
  await bootstrap();
  expect(await calls('npm')).toHaveLength(2);
});

test('installs what only the tests need if they are going to run', async () => {
  await installAptGet();
  await writeFile(join(checkout, 'scripts/test-packages.txt'), '# comment\nbeta svc-beta\n');
  await writeFile(join(checkout, 'scripts/host-packages.txt'), 'alpha svc-alpha\n');
  expect(await bootstrap()).toMatchObject({ code: 0 });
  expect((await calls('apt-get')).at(-1)).toMatch(/install --no-install-recommends alpha$/);
  expect(await bootstrap('--test')).toMatchObject({ code: 0 });
  expect((await calls('apt-get')).at(-1)).toMatch(/install --no-install-recommends beta$/);
  expect(await bootstrap('--test')).toEqual({ code: 0, errors: '' });
});

test('two concurrent runs install once', async () => {
  await installAptGet();
  const both = await Promise.all([bootstrap(), bootstrap()]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(await calls('npm')).toHaveLength(1);
});

test('shows the end of the output of a failed step and the next step', async () => {
  await install('npm', `${ANSWER_VERSION}; echo "no such registry"; exit 1`);
  const { code, errors } = await bootstrap();
  expect(code).toBe(1);
  expect(errors).toMatch(/no such registry/);
  expect(errors).toMatch(/next: /);
});

test('an interrupt ends every process of the running step', async () => {
  await install('npm', `${ANSWER_VERSION}; sleep 60 & echo $! >pid; wait`);
  const running = spawn('/bin/sh', [join(checkout, 'scripts/bootstrap.sh')], environment());
  const exited = once(running, 'exit');
  const readPid = () => readFile(join(checkout, 'pid'), 'utf8').then(Number, () => 0);
  await expect.poll(readPid).toBeGreaterThan(0);
  const pid = await readPid();
  running.kill('SIGTERM');
  expect(await exited).toEqual([143, null]);
  await expect.poll(() => identityOf(pid)).toBeUndefined();
});

test('completes an installation that was interrupted before the next one', async () => {
  await installAptGet();
  await install('dpkg', 'exit 1');
  expect(await bootstrap()).toMatchObject({ code: 0 });
  const all = (await readFile(join(checkout, 'calls'), 'utf8')).split('\n');
  const done = all.filter((line) => /^dpkg |^apt-get .* install /.test(line));
  expect(done[0]).toMatch(/^dpkg .*--configure -a$/);
  expect(done[1]).toMatch(/^apt-get .* install /);
});

test('services may start again after an installation that was killed, unless the machine forbids them', async () => {
  const sbin = join(checkout, 'sbin');
  await mkdir(sbin);
  const [step, ended] = [join(checkout, 'step'), join(checkout, 'ended')];
  const script = join(checkout, 'scripts/bootstrap.sh');
  // With a /usr/sbin of its own.
  const run = `mount --bind '${sbin}' /usr/sbin && PATH='${checkout}/bin' exec /bin/sh '${script}'`;
  const start = () => spawn('unshare', ['--mount', '/bin/sh', '-c', run], { stdio: 'ignore' });
  const policies = () => readdir(sbin);
  await install(
    'apt-get',
    `case $* in *install*) echo $PPID >'${step}'; while [ ! -e '${ended}' ]; do sleep 0.1; done;; esac`,
  );
  const end = async (signal: NodeJS.Signals, { withStep }: { readonly withStep: boolean }) => {
    await Promise.all([step, ended].map((file) => rm(file, { force: true })));
    const running = start();
    const exited = once(running, 'exit');
    const pid = () => readFile(step, 'utf8').then(Number, () => 0);
    await expect.poll(pid, { timeout: 30_000 }).toBeGreaterThan(0);
    expect(await policies()).toEqual(['policy-rc.d']);
    running.kill(signal);
    if (withStep) process.kill(await pid(), signal);
    await exited;
    await writeFile(ended, '');
  };

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await end(signal, { withStep: false });
    await expect.poll(policies, { timeout: 30_000 }).toEqual([]);
  }
  await end('SIGKILL', { withStep: true });
  expect(await policies()).toEqual(['policy-rc.d']);
  await installAptGet();
  expect(await once(start(), 'exit')).toEqual([0, null]);
  expect(await policies()).toEqual([]);

  const own = '#!/bin/sh\nexit 101\n';
  await writeFile(join(sbin, 'policy-rc.d'), own);
  await rm(join(checkout, 'bin/svc-alpha'));
  expect(await once(start(), 'exit')).toEqual([0, null]);
  expect(await readFile(join(sbin, 'policy-rc.d'), 'utf8')).toBe(own);
});

test('names the packages to install manually on a machine without apt-get', async () => {
  const { code, errors } = await bootstrap();
  expect(code).toBe(1);
  expect(errors).toMatch(/alpha beta/);
});
