import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';

const LAUNCHER = fileURLToPath(new URL('../bin/svc.js', import.meta.url));

let checkout: string;

/** A checkout that contains only the launcher; each test provides the pinned Node and the main program. */
beforeEach(async () => {
  checkout = await mkdtemp(join(tmpdir(), 'svc-launcher-'));
  await mkdir(join(checkout, 'apps/cli/bin'), { recursive: true });
  await mkdir(join(checkout, 'apps/cli/src'), { recursive: true });
  await mkdir(join(checkout, 'node_modules/node/bin'), { recursive: true });
  await writeFile(join(checkout, 'apps/cli/package.json'), '{"type":"module"}');
  await writeFile(join(checkout, 'apps/cli/bin/svc.js'), await readFile(LAUNCHER));
});

afterEach(async () => {
  await rm(checkout, { recursive: true, force: true });
});

async function pinNode(script: string): Promise<void> {
  const options = { mode: 0o755 };
  await writeFile(join(checkout, 'node_modules/node/bin/node'), `#!/bin/sh\n${script}`, options);
}

function launch(...args: string[]) {
  return spawn(process.execPath, [join(checkout, 'apps/cli/bin/svc.js'), ...args]);
}

test('starts the pinned Node if another one runs the launcher, and returns its exit code', async () => {
  await pinNode('echo "$@"; exit 7');
  const launcher = launch('status', '--json');
  const output = text(launcher.stdout);
  expect(await once(launcher, 'close')).toEqual([7, null]);
  expect(await output).toMatch(/apps\/cli\/src\/main\.ts status --json\n$/);
});

test('forwards a signal to the program and exits with its exit code', async () => {
  await pinNode(`trap 'echo stopping; exit 3' TERM\necho up\nwhile :; do sleep 0.05; done`);
  const launcher = launch('up');
  await once(launcher.stdout, 'data');
  launcher.kill('SIGTERM');
  expect(await once(launcher, 'close')).toEqual([3, null]);
});

test('runs the program in the same process if the pinned Node runs the launcher', async () => {
  await symlink(process.execPath, join(checkout, 'node_modules/node/bin/node'));
  await writeFile(join(checkout, 'apps/cli/src/main.ts'), 'console.log(process.pid as number);');
  const launcher = launch();
  expect(Number(await text(launcher.stdout))).toBe(launcher.pid);
});

test('says how to install the packages if they are missing', async () => {
  const launcher = launch('up');
  const errors = text(launcher.stderr);
  expect(await once(launcher, 'close')).toEqual([1, null]);
  expect(await errors).toContain('sh scripts/bootstrap.sh');
});
