import type { LlmVendor } from '@svc/contract';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { GatewayLab, KEY, messages, USAGE } from '../../test/gateway-lab.ts';

let lab: GatewayLab;

beforeAll(async () => {
  lab = await GatewayLab.open();
});

afterEach(() => lab.reset());

afterAll(() => lab[Symbol.asyncDispose]());

/** The requests of each dialect, streamed and not, and the vendor's header for the key. */
const DIALECTS = [
  {
    name: 'Anthropic Messages',
    vendor: 'anthropic',
    path: () => '/anthropic/v1/messages?beta=true',
    body: (stream: boolean) => ({ model: 'claude-1', max_tokens: 9, stream, messages }),
    credential: ['x-api-key', KEY],
    upstream: '/v1/messages?beta=true',
    upstreamWhole: '/v1/messages?beta=true',
  },
  {
    name: 'Chat Completions',
    vendor: 'openai',
    path: () => '/openai/chat/completions',
    body: (stream: boolean) => ({ model: 'gpt-1', stream, messages }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/v1/chat/completions',
    upstreamWhole: '/v1/chat/completions',
  },
  {
    name: 'Responses',
    vendor: 'openai',
    path: () => '/openai/responses',
    body: (stream: boolean) => ({ model: 'gpt-1', stream, input: 'hello' }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/v1/responses',
    upstreamWhole: '/v1/responses',
  },
  {
    name: 'Google',
    vendor: 'google',
    path: (stream: boolean) =>
      `/google/models/gemini-1:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'hello' }] }] }),
    credential: ['x-goog-api-key', KEY],
    upstream: '/v1beta/models/gemini-1:streamGenerateContent?alt=sse',
    upstreamWhole: '/v1beta/models/gemini-1:generateContent',
  },
  {
    name: 'DeepSeek',
    vendor: 'deepseek',
    path: () => '/deepseek/chat/completions',
    body: (stream: boolean) => ({ model: 'deepseek-1', stream, messages }),
    credential: ['authorization', `Bearer ${KEY}`],
    upstream: '/chat/completions',
    upstreamWhole: '/chat/completions',
  },
] as const;
const MODELS: Readonly<Record<LlmVendor, string>> = {
  anthropic: 'claude-1',
  openai: 'gpt-1',
  google: 'gemini-1',
  deepseek: 'deepseek-1',
};

describe.each(DIALECTS)('$name', ({ vendor, path, body, credential, upstream, upstreamWhole }) => {
  test('streams each piece immediately, adds the key, and counts tokens', async () => {
    const { ask, usages } = await lab.start(vendor);
    // The second chunk would arrive only after the test's time limit.
    lab.script(
      { text: ['first ', 'second'], usage: USAGE, chunk_delay_ms: 3_600_000 },
      { text: ['first ', 'second'], usage: USAGE },
    );
    const slow = new AbortController();
    const waiting = await ask(path(true), { body: body(true), signal: slow.signal });
    let seen = '';
    for await (const chunk of waiting.body) {
      seen += chunk;
      if (seen.includes('first')) break;
    }
    expect(seen).not.toContain('second');
    slow.abort();

    const { statusCode, body: answer } = await ask(path(true), { body: body(true) });
    expect(statusCode).toBe(200);
    const text = await answer.text();
    expect(text).toContain('second');
    expect(text).not.toContain(KEY);
    await expect.poll(() => usages).toContainEqual({ ...USAGE, model: MODELS[vendor] });
    const last = lab.model.requests.at(-1);
    expect(last?.path).toBe(upstream);
    expect(last?.headers[credential[0]]).toBe(credential[1]);
  });

  test('forwards a complete response, and counts tokens', async () => {
    const { ask, usages, metrics } = await lab.start(vendor);
    lab.script({ text: 'done', usage: USAGE });
    const { statusCode, body: answer } = await ask(path(false), { body: body(false) });
    expect(statusCode).toBe(200);
    expect(await answer.text()).toContain('done');
    expect(usages).toEqual([{ ...USAGE, model: MODELS[vendor] }]);
    expect(lab.model.requests.at(-1)?.path).toBe(upstreamWhole);
    expect(await metrics.metrics()).toContain(
      `svc_worker_llm_tokens_total{vendor="${vendor}",kind="input"} 100`,
    );
  });

  test.each([401, 429, 529])('forwards %i with its body', async (status) => {
    const { ask, usages } = await lab.start(vendor);
    const said = { error: { type: 'whatever', message: 'the vendor says so' } };
    lab.script({ status, body: said, retry_after: '7' });
    const { statusCode, headers, body: answer } = await ask(path(true), { body: body(true) });
    expect({ statusCode, retry: headers['retry-after'] }).toEqual({
      statusCode: status,
      retry: '7',
    });
    expect(await answer.json()).toEqual(said);
    expect(usages).toEqual([]);
  });
});
