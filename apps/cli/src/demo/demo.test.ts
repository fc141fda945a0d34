import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@svc/config';
import { AGENTS } from '@svc/contract';
import { Agent, request } from 'undici';
import { expect, test } from 'vitest';
import { vendorKey } from '../sessions/llm-vendor.ts';
import { PROMPTS, REMEMBERED } from './script.ts';
import { isIn, startScriptedModel } from './scripted-model.ts';

/** Sends a conversation, a prompt followed by tool results, and returns the model's answer. */
type Ask = (...messages: string[]) => Promise<string>;

test.each(AGENTS)(
  'the scripted model answers every request of %s in the demo over HTTPS',
  async (agent) => {
    const directory = await mkdtemp(join(tmpdir(), 'svc-demo-test-'));
    const { server, llm, settings } = await startScriptedModel(agent, directory);
    const ca = await readFile(settings.SVC_EGRESS_CA_FILE, 'utf8');
    const dispatcher = new Agent({ connect: { ca } });
    try {
      // The settings allow exactly one address.
      const { egressAllowHosts } = loadConfig(settings);
      const { hostname, port } = new URL(llm.base_url);
      expect(egressAllowHosts).toEqual([{ host: hostname, port: Number(port) }]);

      const ask: Ask = async (prompt, ...results) => {
        const isOpenai = llm.vendor === 'openai';
        const body = isOpenai
          ? responsesRequest(prompt, results)
          : messagesRequest(prompt, results);
        const { body: answer } = await request(
          `${llm.base_url}${isOpenai ? '/responses' : '/v1/messages'}`,
          { method: 'POST', dispatcher, body: JSON.stringify({ model: llm.model, ...body }) },
        );
        return answer.text();
      };
      const output = '2 3 5 7 11 13 17 19 23 29\n';
      expect(await ask(PROMPTS.work)).toContain('cat > primes.py');
      expect(await ask(PROMPTS.work, 'primes.py is written\n')).toContain('python3 primes.py');
      expect(await ask(PROMPTS.work, output)).toContain('it works');
      expect(await ask(PROMPTS.remember)).toContain('23 is your favourite');
      const before = server.requests.length;
      expect(await ask(PROMPTS.recall)).toContain('python3 primes.py');
      expect(isIn(server.requests.slice(before), REMEMBERED)).toBe(false);
      expect(await ask(PROMPTS.recall, output)).toContain('23 is your favourite');
      await ask(`${PROMPTS.remember} ${PROMPTS.recall}`);
      expect(isIn(server.requests.slice(before), REMEMBERED)).toBe(true);
    } finally {
      await server.close();
      await dispatcher.close();
      await rm(directory, { recursive: true, force: true });
    }
  },
);

function messagesRequest(prompt: string, results: readonly string[]) {
  const answers = results.map((content) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 't', content }],
  }));
  return { max_tokens: 100, messages: [{ role: 'user', content: prompt }, ...answers] };
}

function responsesRequest(prompt: string, results: readonly string[]) {
  const outputs = results.map((output) => ({
    type: 'function_call_output',
    call_id: 't',
    output,
  }));
  return { input: [{ role: 'user', content: prompt }, ...outputs] };
}

test('a real key must be set, and its vendor is derived from the variable, the agent or the model', () => {
  const environment = { ANTHROPIC_API_KEY: ' k \n', MY_OPENAI: 'o', OTHER: 'x', EMPTY: '' };
  const key = (name: string, more: object = {}) =>
    vendorKey(name, { agent: 'deictic', ...more }, environment);
  expect(key('ANTHROPIC_API_KEY')).toEqual({ key: 'k', vendor: 'anthropic' });
  expect(key('MY_OPENAI').vendor).toBe('openai');
  expect(key('OTHER', { model: 'gemini-2' }).vendor).toBe('google');
  expect(key('OTHER', { vendor: 'deepseek' }).vendor).toBe('deepseek');
  expect(key('OTHER', { agent: 'codex' }).vendor).toBe('openai');
  for (const name of ['EMPTY', 'NONE']) {
    expect(() => key(name)).toThrow(expect.objectContaining({ code: 'no_key' }));
  }
});
