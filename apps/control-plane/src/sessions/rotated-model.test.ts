import type { AgentSecrets } from '@svc/contract';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Harness, type StartedSession } from '../../test/harness.ts';

const HOST = 'models.example:8443';
const BASE_URL = `https://${HOST}/v1`;

let harness: Harness;
let key: string;
let worker: WorkerDouble;

beforeAll(async () => {
  harness = await Harness.start({ SVC_EGRESS_ALLOW_HOSTS: HOST });
  key = (await harness.signUp()).key;
});
afterAll(() => harness?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await harness.reset();
  await harness.sql.query('truncate secret_bundles');
  await harness.addBundle(key, 'llm', { LLM_API_KEY: 'key-1', LLM_MODEL: 'gemini-one' });
  worker = await harness.addWorker('w1');
});

const start = (json: object = {}) =>
  harness.startSession(key, { llm: { vendor: 'google' }, ...json });
const rotate = (values: object) =>
  harness.call('PUT', '/v1/tenants/me/secrets/llm', { key, json: { values } });
const llmOf = async ({ vmId }: StartedSession) => {
  const path = `/sandboxes/${vmId}/agent-secrets`;
  const { llm } = (await (await worker.ask(harness.plane.url, 'GET', path)).json()) as AgentSecrets;
  return llm;
};
const shownModel = async ({ id }: StartedSession) =>
  ((await harness.session(key, id)).llm as { model?: string }).model;

describe('a rotated LLM_MODEL', () => {
  test('is the model of a running session, which its record shows', async () => {
    const session = await start();
    await rotate({ LLM_API_KEY: 'key-2', LLM_MODEL: 'gemini-two' });
    expect(await llmOf(session)).toEqual({ api_key: 'key-2', model: 'gemini-two' });
    expect(await shownModel(session)).toBe('gemini-two');
  });

  test('is replaced by the vendor’s default when the rotation removes it', async () => {
    const session = await start();
    await rotate({ LLM_API_KEY: 'key-2' });
    expect((await llmOf(session)).model).toBe(
      await shownModel(await start({ llm: { vendor: 'google' } })),
    );
  });

  test('does not replace the model that the request named', async () => {
    const session = await start({ llm: { vendor: 'google', model: 'gemini-asked' } });
    await rotate({ LLM_API_KEY: 'key-2', LLM_MODEL: 'gemini-two' });
    expect((await llmOf(session)).model).toBe('gemini-asked');
  });

  test('that arrives during the start of a session is not missed', async () => {
    worker.beforeCreated = async () => {
      await rotate({ LLM_API_KEY: 'key-2', LLM_MODEL: 'gemini-two' });
    };
    expect((await llmOf(await start())).model).toBe('gemini-two');
  });

  test.each([
    ['an agent of another vendor accepts', 'gemini-two'],
    ['no agent accepts', 'not a model'],
  ])('that only %s leaves the session its model and says so', async (_, model) => {
    await rotate({ LLM_API_KEY: 'key-1', LLM_MODEL: 'claude-one' });
    const session = await start({ agent: { kind: 'claude-code' }, llm: { vendor: 'anthropic' } });
    await rotate({ LLM_API_KEY: 'key-2', LLM_MODEL: model });
    expect(await llmOf(session)).toEqual({
      api_key: 'key-2',
      model: 'claude-one',
      problem:
        "claude-code does not accept the model of the rotated bundle (LLM_MODEL, else the vendor's default); the session keeps its model, claude-one.",
    });
    expect(await shownModel(session)).toBe('claude-one');
    await rotate({ LLM_API_KEY: 'key-3', LLM_MODEL: 'claude-two' });
    expect(await llmOf(session)).toEqual({ api_key: 'key-3', model: 'claude-two' });
  });
});

describe('a rotated LLM_BASE_URL', () => {
  test('is the endpoint of a running session, and its removal restores the vendor’s', async () => {
    const session = await start();
    await rotate({ LLM_API_KEY: 'key-2', LLM_BASE_URL: BASE_URL });
    expect(await llmOf(session)).toMatchObject({ base_url: BASE_URL });
    await rotate({ LLM_API_KEY: 'key-3' });
    expect(await llmOf(session)).not.toHaveProperty('base_url');
  });

  test('does not replace the one that the request named', async () => {
    const session = await start({ llm: { vendor: 'google', base_url: `${BASE_URL}/asked` } });
    await rotate({ LLM_API_KEY: 'key-2', LLM_BASE_URL: BASE_URL });
    expect(await llmOf(session)).toMatchObject({ base_url: `${BASE_URL}/asked` });
  });

  test.each([['http://models.example/v1'], ['https://127.0.0.1/v1'], ['https://10.0.0.1:8443']])(
    'that the address rules forbid is refused at the PUT, and changes nothing: %s',
    async (url) => {
      const session = await start();
      const refused = await rotate({ LLM_API_KEY: 'key-2', LLM_BASE_URL: url });
      expect(refused).toMatchObject({ status: 400, body: { code: 'llm_base_url_refused' } });
      expect(await llmOf(session)).toMatchObject({ api_key: 'key-1' });
      expect(worker.configUpdates).toEqual([]);
    },
  );

  test('whose removal leaves an agent with a dialect that it does not speak is reported', async () => {
    await rotate({ LLM_API_KEY: 'key-1', LLM_BASE_URL: BASE_URL, LLM_MODEL: 'gpt-one' });
    const session = await start({ agent: { kind: 'codex' }, llm: { vendor: 'deepseek' } });
    expect(await llmOf(session)).not.toHaveProperty('problem');
    await rotate({ LLM_API_KEY: 'key-2', LLM_MODEL: 'gpt-one' });
    expect((await llmOf(session)).problem).toBe(
      'codex only speaks the API of openai: without LLM_BASE_URL, its tasks fail until the bundle is rotated again.',
    );
  });
});
