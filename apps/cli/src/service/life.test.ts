import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BUILT_IMAGES } from '@svc/service-kit/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commandLine, type Outcome } from '../../test/run-svc.ts';

/** The first start on a machine builds the image. */
const TEST_MS = 1_200_000;

let directory: string;
let run: (args: readonly string[], input?: string) => Promise<Outcome>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-life-'));
  run = commandLine({
    HOME: directory,
    SVC_DATA_DIR: directory,
    SVC_LISTEN: 'localhost:0',
    SVC_INTERNAL_LISTEN: 'localhost:0',
    SVC_RUNTIME_INTERNAL_LISTEN: 'localhost:0',
    SVC_IMAGE_DIR: BUILT_IMAGES,
    SVC_POOL: 'standard=0',
  });
});

afterEach(async () => {
  await run(['down']);
  await rm(directory, { recursive: true, force: true });
});

/** Runs a command that must succeed, and returns its output. */
async function svc(...args: string[]): Promise<string> {
  const { code, output, errors } = await run(args);
  expect(`${errors}${code === 0 ? '' : output}`).toBe('');
  expect(code).toBe(0);
  return output.trim();
}

async function killService(): Promise<void> {
  const record = JSON.parse(await readFile(join(directory, 'service.json'), 'utf8'));
  process.kill(record.process.pid, 'SIGKILL');
  await expect.poll(async () => (await run(['status'])).code).toBe(3);
}

async function microvmsLeft(): Promise<string[]> {
  return readdir(join(directory, 'vms'));
}

test(
  'svc up runs the self-check, then serves every sandbox command until svc down',
  async () => {
    const shown = await svc('up', '--detach');
    expect(shown).toMatch(/✓ run +python3 .* = 42 /);
    expect(shown).toMatch(/is ready in/);

    const status = JSON.parse(await svc('status', '--json'));
    expect(status).toMatchObject({ state: 'ready', data_dir: directory });
    expect(status.base_url).toMatch(/^https:\/\/localhost:\d+$/);
    expect(status.images).toContainEqual(expect.objectContaining({ template: 'standard' }));
    expect(status.workers).toHaveLength(1);

    const second = await run(['up']);
    expect(second).toMatchObject({ code: 1, errors: expect.stringContaining('already_running') });

    const id = await svc('sandbox', 'create', '--env', 'GREETING=hello');
    expect(id).toMatch(/^vm_/);
    const command = [
      'sandbox',
      'exec',
      id,
      '--',
      'sh',
      '-c',
      'echo "$GREETING"; echo no >&2; exit 3',
    ];
    expect(await run(command)).toEqual({ code: 3, output: 'hello\n', errors: 'no\n' });
    await run(['sandbox', 'cp', '-', `${id}:/tmp/note`], 'over and back');
    expect(await svc('sandbox', 'cp', `${id}:/tmp/note`, '-')).toBe('over and back');
    expect(await svc('sandbox', 'pause', id)).toBe(`${id} paused`);
    expect(await svc('sandbox', 'list')).toMatch(new RegExp(`^${id} +paused`, 'm'));
    expect(await svc('sandbox', 'resume', id)).toBe(`${id} running`);
    expect(await svc('sandbox', 'rm', id)).toBe(`${id} destroyed`);

    expect(await svc('down')).toContain('stop');
    expect(await run(['status'])).toMatchObject({ code: 3 });
    expect(await microvmsLeft()).toEqual([]);
  },
  TEST_MS,
);

test(
  'sandboxes survive a crash and an upgrade, and svc down cleans up after a crash',
  async () => {
    await svc('up', '--detach');
    const id = await svc('sandbox', 'create', '--idle-timeout', '1h');
    await run(['sandbox', 'exec', id, 'echo kept >/root/note']);

    await killService();
    await svc('up', '--detach');
    expect(await svc('sandbox', 'exec', id, 'cat /root/note')).toBe('kept');

    await svc('down', '--keep-sandboxes');
    expect(await microvmsLeft()).toHaveLength(1);
    await svc('up', '--detach');
    expect(await svc('sandbox', 'exec', id, 'cat /root/note')).toBe('kept');

    await killService();
    expect(await svc('down')).toMatch(/ended 1 micro-VM.*\nended the embedded PostgreSQL/);
    expect(await microvmsLeft()).toEqual([]);
  },
  TEST_MS,
);
