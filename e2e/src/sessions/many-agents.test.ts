import { expect, test } from 'vitest';
import { framesOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

const AGENTS = [
  {
    name: 'scribe',
    capability_name: 'writing',
    capability_description: 'Writes files',
    tools: ['write_file'],
  },
  {
    name: 'runner',
    capability_name: 'running',
    capability_description: 'Runs commands',
    tools: ['shell'],
  },
];

const fixture = useSessionFixture({
  rules: [
    {
      when: { user: 'run the probe yourself' },
      reply: { tool_calls: [{ name: 'shell', arguments: { command: 'echo ran-$((40 + 2))' } }] },
    },
    {
      when: { user: 'have the probe run' },
      reply: {
        tool_calls: [
          {
            name: 'delegate',
            arguments: { capability: 'running', task: 'run the probe yourself' },
          },
        ],
      },
    },
    { when: { tool: 'the runner says' }, reply: { text: 'All is done.' } },
    { when: { tool: '(ran-42)' }, reply: { text: 'the runner says $1' } },
  ],
});

test('a coordinator delegates to the agent with the matching capability, and frames name their agent', async () => {
  const session = await fixture().create('deictic', {
    app: { id: 'e2e', set_id: 'team', capability_sets: { team: { agents: AGENTS } } },
  });
  const client = await fixture().attach(session);
  const turn = await client.task('Please have the probe run', 'one');
  expect(framesOf(turn, 'task_completed')).toMatchObject([{ status: 'completed' }]);
  expect(framesOf(turn, 'tool_call').map(({ name, agent }) => [name, agent === 'runner'])).toEqual([
    ['delegate', false],
    ['shell', true],
  ]);
  const said = framesOf(turn, 'text_delta');
  expect(said.every(({ agent }) => agent !== undefined)).toBe(true);
  expect(said.some(({ agent }) => agent === 'runner')).toBe(true);
  // The task reached the model as a prompt of the runner.
  const request = fixture().models.requests.find(({ body }) =>
    JSON.stringify(body).includes('run the probe yourself'),
  );
  expect(request).toBeDefined();
});
