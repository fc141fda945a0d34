import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { McpClient } from '../../../test/tool-server/mcp-client.ts';
import { defineTool, done } from '../tools/tool.ts';
import { ToolServer } from './tool-server.ts';

/** Calls of the tool `wait` that have begun, and those that were ended. */
let begun: string[];
let ended: string[];
let ending: AbortController;
let server: ToolServer;
let client: McpClient;

const TOOLS = [
  defineTool({
    name: 'echo',
    description: 'Repeats a text.',
    input: z.object({ text: z.string().max(5), loud: z.boolean().default(false) }),
    async run({ text, loud }) {
      if (text === 'fail') throw new Error('It failed.');
      return done(loud ? text.toUpperCase() : text);
    },
  }),
  defineTool({
    name: 'look',
    description: 'Shows a picture.',
    input: z.object({}),
    run: async () => ({ ...done('seen'), image: { mediaType: 'image/png', data: 'cG5n' } }),
  }),
  defineTool({
    name: 'wait',
    description: 'Waits until it is ended.',
    input: z.object({ name: z.string() }),
    async run({ name }, signal) {
      begun.push(name);
      await sleep(600_000, undefined, { signal }).finally(() => ended.push(name));
      return done('');
    },
  }),
];

beforeEach(async () => {
  begun = [];
  ended = [];
  ending = new AbortController();
  server = await ToolServer.start(TOOLS, ending);
  client = await McpClient.connect(server);
});
afterEach(() => server.close());

/** Begins a call of `wait`, and returns its result. */
async function begin(name: string, caller = client, signal?: AbortSignal) {
  const result = caller.call('wait', { name }, signal).catch((error: unknown) => String(error));
  await expect.poll(() => begun).toContain(name);
  return { result };
}

describe('the tools', () => {
  test('are listed with the schemas of their inputs', async () => {
    const [echo, ...others] = await client.tools();
    expect(echo).toMatchObject({
      name: 'echo',
      description: 'Repeats a text.',
      inputSchema: { type: 'object', properties: { text: { type: 'string', maxLength: 5 } } },
    });
    // What has a default may be left out.
    expect(echo?.inputSchema).toMatchObject({ required: ['text'] });
    expect(others.map(({ name }) => name)).toEqual(['look', 'wait']);
  });

  test('answer with text, pictures and errors', async () => {
    expect(await client.call('echo', { text: 'hi', loud: true })).toEqual({
      content: [{ type: 'text', text: 'HI' }],
      isError: false,
    });
    expect(await client.call('look')).toEqual({
      content: [
        { type: 'text', text: 'seen' },
        { type: 'image', data: 'cG5n', mimeType: 'image/png' },
      ],
      isError: false,
    });
    expect(await client.call('echo', { text: 'fail' })).toEqual({
      content: [{ type: 'text', text: 'It failed.' }],
      isError: true,
    });
    const wrong = await client.call('echo', { text: 'too long' });
    expect(wrong).toMatchObject({ isError: true });
    expect(wrong.content[0]?.text).toContain('text');
  });

  test('that are not there are refused by name', async () => {
    await expect(client.call('shell')).rejects.toThrow('There is no tool shell here.');
  });
});

describe('a call', () => {
  test('ends when its client cancels it, and only that one', async () => {
    const other = await McpClient.connect(server);
    const { result } = await begin('one');
    const requestId = client.lastId;
    const { result: untouched } = await begin('other', other);
    expect(other.lastId).toBe(requestId);
    expect(await client.notify('notifications/cancelled', { requestId })).toBe(202);
    expect(await result).toContain('no answer: 200');
    expect(ended).toEqual(['one']);
    server.close();
    await untouched;
  });

  test('ends when its client disconnects', async () => {
    const disconnect = new AbortController();
    const { result } = await begin('one', client, disconnect.signal);
    disconnect.abort();
    await result;
    await expect.poll(() => ended).toEqual(['one']);
  });

  test('ends when its task is interrupted, as do those that follow until the next task', async () => {
    const interrupt = new AbortController();
    server.duringTask(interrupt.signal);
    const { result } = await begin('one');
    interrupt.abort();
    const interrupted = {
      content: [{ type: 'text', text: 'Interrupted by the user.' }],
      isError: true,
    };
    expect(await result).toEqual(interrupted);
    expect(ended).toEqual(['one']);
    expect(await client.call('echo', { text: 'late' })).toEqual(interrupted);
    server.duringTask(new AbortController().signal);
    expect(await client.call('echo', { text: 'next' })).toMatchObject({ isError: false });
  });

  test('ends with the server', async () => {
    const { result } = await begin('one');
    server.close();
    await result;
    expect(ended).toEqual(['one']);
    await expect(client.tools()).rejects.toThrow();
  });
});

describe('the server', () => {
  test.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['1999-01-01', '2025-11-25'],
  ])('speaks version %s as %s', async (protocolVersion, spoken) => {
    expect(await client.request('initialize', { protocolVersion })).toMatchObject({
      protocolVersion: spoken,
      capabilities: { tools: {} },
    });
  });

  test('answers a ping, and refuses what it does not know', async () => {
    expect(await client.request('ping')).toEqual({});
    await expect(client.request('resources/list')).rejects.toThrow('no method resources/list');
    expect(await client.notify('notifications/unknown')).toBe(202);
    expect(await client.notify('notifications/cancelled', { requestId: 999 })).toBe(202);
  });

  test('admits only clients with its token, and no page of a browser', async () => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const post = async (headers: Record<string, string>) =>
      (await client.post(message, headers)).status;
    expect(await post({})).toBe(200);
    expect(await post({ authorization: '' })).toBe(401);
    expect(await post({ authorization: `Bearer ${server.token.replace(/.$/, '*')}` })).toBe(401);
    expect(await post({ authorization: `Bearer ${server.token}x` })).toBe(401);
    expect(await post({ origin: new URL(server.url).origin })).toBe(403);
    const preflight = await fetch(server.url, {
      method: 'OPTIONS',
      headers: { origin: 'https://page.example' },
    });
    expect(preflight.status).toBe(403);
    expect([...preflight.headers.keys()].join()).not.toContain('access-control');
  });

  test('refuses other requests', async () => {
    const authorization = `Bearer ${server.token}`;
    const get = await fetch(server.url, { headers: { authorization } });
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
    const elsewhere = await fetch(new URL('/', server.url), { headers: { authorization } });
    expect(elsewhere.status).toBe(404);
    expect((await client.post('{}', { 'content-type': 'text/plain' })).status).toBe(415);
    for (const body of ['{', '[]', 'null', '{}', '{"jsonrpc":"2.0"}']) {
      expect((await client.post(body)).status, body).toBe(400);
    }
    const large = await client
      .post('x'.repeat(1024 * 1024 + 1))
      .then(({ status }) => status)
      // The connection may end before the body has been sent.
      .catch(() => 413);
    expect(large).toBe(413);
  });
});
