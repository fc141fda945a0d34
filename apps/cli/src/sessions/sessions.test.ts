import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { requestOf, startCommand } from '../commands/session/start.ts';
import { SessionAccessStore } from './access-store.ts';
import { vendorOf } from './llm-vendor.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'svc-sessions-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const access = (id: string, forMs = 60_000) => ({
  chat_session_id: id,
  jwt: 'secret',
  connect_url: 'wss://localhost:8444/v1/sessions/x/ws',
  expires_at: new Date(Date.now() + forMs).toISOString(),
});

describe('stored session access', () => {
  test('is readable only by its owner, until it expires or is removed', async () => {
    const store = new SessionAccessStore(join(directory, 'sessions'));
    expect(await store.find('a')).toBeUndefined();
    await store.save(access('old', -1));
    await store.save(access('a'));
    expect(await store.find('a')).toMatchObject({ jwt: 'secret' });
    const names = await readdir(join(directory, 'sessions'));
    expect(names).toEqual(['a.json']);
    expect((await stat(join(directory, 'sessions/a.json'))).mode & 0o777).toBe(0o600);
    expect((await stat(join(directory, 'sessions'))).mode & 0o777).toBe(0o700);
    await writeFile(join(directory, 'sessions/b.json'), 'rubbish');
    expect(await store.find('b')).toBeUndefined();
    await store.remove('a');
    expect(await store.find('a')).toBeUndefined();
  });
});

test.each([
  ['claude-code', undefined, 'anthropic'],
  ['codex', 'gpt-5', 'openai'],
  ['deictic', undefined, 'anthropic'],
  ['deictic', 'claude-x', 'anthropic'],
  ['deictic', 'o3', 'openai'],
  ['deictic', 'gpt-5', 'openai'],
  ['deictic', 'gemini-2', 'google'],
  ['deictic', 'deepseek-chat', 'deepseek'],
  ['deictic', 'ollama', 'anthropic'],
] as const)('the vendor of %s with model %s is %s', (agent, model, vendor) => {
  expect(vendorOf(agent, model)).toBe(vendor);
});

describe('svc session start', () => {
  /** The request for these arguments. */
  function requested(...args: string[]) {
    const command = startCommand()
      .exitOverride()
      .configureOutput({ writeErr: () => undefined });
    // Only parses the options: running the action would connect.
    command.parseOptions(args);
    return requestOf(command.opts());
  }

  test('requests deictic by default', () => {
    expect(requested()).toMatchObject({
      agent: { kind: 'deictic' },
      app: { id: 'svc-sandbox' },
      template: 'standard',
      llm: { vendor: 'anthropic' },
    });
    expect(requested()).not.toHaveProperty('ttl_seconds');
  });

  test('applies every option', () => {
    const args =
      '-a codex -m gpt-5 --base-url https://llm.test/v1 -t browser --ttl 2h --vcpu 2 --memory 2G --disk 8G';
    const more = ['--agent-version', '0.1.2', '--tool', 'shell', '--tool', 'apply_patch'];
    expect(requested(...args.split(' '), ...more, '-s', 'one', '--secrets', 'two')).toMatchObject({
      agent: { kind: 'codex', version: '0.1.2' },
      app: { capability_sets: { default: { tools: ['shell', 'apply_patch'] } } },
      template: 'browser',
      vcpu: 2,
      memory_mib: 2048,
      disk_mib: 8192,
      llm: { vendor: 'openai', model: 'gpt-5', base_url: 'https://llm.test/v1' },
      secrets: ['one', 'two'],
      ttl_seconds: 7200,
    });
  });

  test.each([
    ['--agent', 'gpt'],
    ['--vendor', 'acme'],
    ['--template', 'canvas'],
    ['--ttl', 'soon'],
    ['--memory', '1T'],
  ])('rejects %s %s with a hint and an example', (option, value) => {
    expect(() => requested(option, value)).toThrow(/hint: .*\n {2}example: /s);
  });
});
