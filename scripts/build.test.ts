import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

const BUILD_MS = 300_000;
const SDK = 'packages/sdk/dist';
/** Uses the types of the SDK and, through them, of the contract. */
const PROGRAM = `
import { SvcClient, SvcError, type ExecResponse, type SandboxRecord } from '@svc/sdk';

await using client = new SvcClient({ baseUrl: 'https://localhost:1', apiKey: 'svc_live_x' });
try {
  const result: ExecResponse = await client.sandboxes.exec('vm_1', 'true');
  const text: string = result.stdout + result.stderr;
  const record: SandboxRecord = await client.sandboxes.get('vm_1');
  // @ts-expect-error A field that the contract does not have.
  console.log(text, record.state, record.colour);
} catch (error) {
  if (!(error instanceof SvcError)) throw error;
  console.log(error.code);
}
const connection = client.sessions.connect({
  chat_session_id: 'x',
  connect_url: 'wss://localhost:1/v1/sessions/x/ws',
  jwt: 'x',
});
connection.close();
`;

let directory: string;

/** Runs a program to its end. Returns its output; a failure reports it. */
async function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  try {
    return (await promisify(execFile)(program, args, { cwd, timeout: BUILD_MS })).stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

/** Packs a package. Returns the path of its tarball. */
async function pack(folder: string): Promise<string> {
  const tarballs = await mkdtemp(join(directory, 'pack-'));
  await run('npm', ['pack', '--ignore-scripts', '--pack-destination', tarballs], folder);
  const [name = ''] = await readdir(tarballs);
  return join(tarballs, name);
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-sdk-'));
  await run(process.execPath, ['scripts/build.ts'], '.');
}, BUILD_MS);

afterAll(() => rm(directory, { recursive: true }));

test(
  'the SDK installs from its tarball and public packages alone, runs, and brings its types',
  async () => {
    const { dependencies } = JSON.parse(await readFile(join(SDK, 'package.json'), 'utf8'));
    const others = Object.keys(dependencies).filter((name) => !name.startsWith('@svc/'));
    const installed: Record<string, string> = { '@svc/sdk': `file:${await pack(SDK)}` };
    // In place of the registry.
    for (const name of others) installed[name] = `file:${await pack(join('node_modules', name))}`;
    const app = join(directory, 'app');
    await mkdir(app);
    await writeFile(
      join(app, 'package.json'),
      JSON.stringify({ private: true, type: 'module', dependencies: installed }),
    );
    const quiet = ['--no-audit', '--no-fund', '--ignore-scripts'];
    const nowhere = ['--offline', '--registry', 'http://127.0.0.1:9/'];
    await run('npm', ['install', ...quiet, ...nowhere], app);
    await writeFile(join(app, 'main.ts'), PROGRAM);
    const compiler = join(process.cwd(), 'node_modules/@typescript/native/bin/tsc');
    const options = ['--module', 'nodenext', '--target', 'es2024', '--strict', '--types', ''];
    await run(
      process.execPath,
      [compiler, ...options, '--lib', 'es2024,dom,dom.asynciterable,esnext.disposable', 'main.ts'],
      app,
    );
    expect(await run(process.execPath, ['main.js'], app)).toBe('connection_failed\n');
  },
  BUILD_MS,
);
