import type { AgentFrame, AppJson } from '@svc/contract';
import { expect, test } from 'vitest';
import { bodies } from '../../../test/deictic/anthropic-body.ts';
import { openSession } from '../../../test/deictic/open-session.ts';

const APP: AppJson = {
  name: 'kitchen',
  capability_sets: [
    {
      name: 'default',
      agents: [
        {
          name: 'reader',
          capability_name: 'reading',
          capability_description: 'Reads the recipes.',
          tools: ['read_file', 'list_files', 'telescope'],
        },
        { name: 'cook', capability_name: 'cooking', capability_description: 'Cooks.' },
      ],
    },
  ],
};

const delegate = (capability: string, task: string) => ({
  tool_calls: [{ name: 'delegate', arguments: { capability, task } }],
});
const agentsOf = (frames: readonly AgentFrame[]) =>
  frames.map((frame) => ('agent' in frame ? frame.agent : undefined));

test('a coordinator delegates work to the agent with the right capability and its own tools', async () => {
  await using session = await openSession(
    [
      { when: { user: 'dinner' }, reply: delegate('cooking', 'cook (soup)') },
      {
        when: { user: 'cook .soup' },
        reply: { tool_calls: [{ name: 'shell', arguments: { command: 'echo hot' } }] },
      },
      { when: { system: 'agent "cook"', tool: 'hot' }, reply: { text: 'The soup is hot.' } },
      { when: { system: 'coordinate', tool: 'soup is hot' }, reply: { text: 'Dinner!' } },
    ],
    { setup: { app: APP } },
  );
  expect(await session.run('dinner')).toEqual({ status: 'completed', result: 'Dinner!' });
  expect(session.frames.map((frame) => [frame.type, 'agent' in frame && frame.agent])).toEqual([
    ['tool_call', 'coordinator'],
    ['tool_call', 'cook'],
    ['tool_result', 'cook'],
    ['text_delta', 'cook'],
    ['message', 'cook'],
    ['tool_result', 'coordinator'],
    ['text_delta', 'coordinator'],
    ['message', 'coordinator'],
  ]);
  const [asked, cooking] = bodies(session.server);
  expect(asked?.tools?.map(({ name }) => name)).toEqual(['delegate']);
  expect(asked?.tools?.[0]?.description).toContain('- reading: Reads the recipes.');
  expect(cooking?.tools?.map(({ name }) => name)).toContain('shell');
  expect(JSON.stringify(cooking?.messages)).not.toContain('dinner');
});

test('an agent has only the tools that it was given', async () => {
  await using session = await openSession(
    [
      { when: { user: 'dinner' }, reply: delegate('reading', 'read it') },
      {
        when: { user: 'read it' },
        reply: { tool_calls: [{ name: 'shell', arguments: { command: 'touch escaped' } }] },
      },
      { when: { tool: 'no tool shell' }, reply: { text: 'I cannot.' } },
      { when: { tool: 'I cannot' }, reply: { text: 'Sorry.' } },
    ],
    { setup: { app: APP } },
  );
  expect((await session.run('dinner')).result).toBe('Sorry.');
  expect(bodies(session.server)[1]?.tools?.map(({ name }) => name)).toEqual([
    'read_file',
    'list_files',
  ]);
  expect(session.logged.join()).toContain('telescope');
});

test('each agent remembers its earlier work, even after a resume', async () => {
  await using session = await openSession(
    [
      { when: { user: '^ask (\\w+)' }, reply: delegate('cooking', 'salt: $1') },
      { when: { system: 'coordinate', tool: 'You said' }, reply: { text: 'ok' } },
    ],
    { setup: { app: APP } },
  );
  await session.run('ask little');
  session.resume();
  await session.run('ask much');
  const [last] = bodies(session.server).filter(({ messages }) =>
    JSON.stringify(messages.at(-1)).includes('salt: much'),
  );
  expect(JSON.stringify(last?.messages)).toContain('salt: little');
  expect(JSON.stringify(last?.messages)).not.toContain('ask little');
});

test('budgets and failures apply to the whole task', async () => {
  await using session = await openSession(
    [
      { when: { user: 'dinner' }, reply: delegate('cooking', 'cook') },
      { when: { user: '^cook' }, reply: { status: 401 } },
    ],
    { setup: { app: APP } },
  );
  expect((await session.run('dinner')).status).toBe('failed');
  expect(session.ofType('error')).toMatchObject([{ code: 'llm_unauthorized', agent: 'cook' }]);
  expect((await session.run('hello')).status).toBe('completed');

  await using busy = await openSession(
    [
      { when: { user: 'dinner' }, reply: delegate('cooking', 'cook') },
      { when: { system: 'coordinate', tool: '.' }, reply: delegate('cooking', 'cook') },
    ],
    { setup: { app: APP }, options: { turns: 5 } },
  );
  expect((await busy.run('dinner')).status).toBe('failed');
  expect(busy.server.requests).toHaveLength(5);
  expect(busy.ofType('error')).toMatchObject([{ code: 'turn_limit' }]);
});

test('an interrupt reaches the working agent', async () => {
  await using session = await openSession(
    [
      { when: { user: 'dinner' }, reply: delegate('cooking', 'cook') },
      { when: { user: '^cook' }, reply: { text: ['stir', '…'], chunk_delay_ms: 60_000 } },
    ],
    { setup: { app: APP } },
  );
  const interrupt = new AbortController();
  const task = session.run('dinner', interrupt.signal);
  await session.seen('text_delta');
  interrupt.abort();
  expect((await task).status).toBe('interrupted');
  expect((await session.run('hello')).status).toBe('completed');
});

const [SET] = APP.capability_sets;
const ALONE: AppJson = {
  name: 'kitchen',
  capability_sets: [{ name: 'default', agents: SET?.agents.slice(0, 1) ?? [] }],
};

test.each([
  ['one agent under wire version 2', 2, ALONE],
  ['one agent under wire version 1', 1, ALONE],
  ['wire version 1 never has several', 1, APP],
] as const)('%s: no coordinator, no agent field, its tools only', async (_, wireVersion, app) => {
  await using session = await openSession([], { setup: { wireVersion, app } });
  await session.run('hello');
  expect(new Set(agentsOf(session.frames))).toEqual(new Set([undefined]));
  const [body] = bodies(session.server);
  expect(body?.tools?.map(({ name }) => name)).toEqual(['read_file', 'list_files']);
  expect(JSON.stringify(body?.system)).toContain('Reads the recipes.');
});

test('without an app there is one agent with all tools', async () => {
  await using session = await openSession([], { setup: { wireVersion: 1 } });
  await session.run('hello');
  expect(bodies(session.server)[0]?.tools?.map(({ name }) => name)).toEqual([
    'shell',
    'read_file',
    'write_file',
    'edit_file',
    'search',
    'list_files',
    'fetch',
  ]);
});

test('agents with the same name and capability get unique ones, and so does the coordinator', async () => {
  const twins: AppJson = {
    name: 'twins',
    capability_sets: [
      { name: 'a', agents: [{ name: 'coordinator', capability_name: 'c' }] },
      { name: 'b', agents: [{ name: 'coordinator', capability_name: 'c' }] },
    ],
  };
  await using session = await openSession(
    [
      { when: { user: 'go' }, reply: delegate('c 2', 'work') },
      { when: { tool: 'You said' }, reply: { text: 'done' } },
    ],
    { setup: { app: twins } },
  );
  expect((await session.run('go')).result).toBe('done');
  expect([...new Set(agentsOf(session.frames))]).toEqual(['coordinator 3', 'coordinator 2']);
});
