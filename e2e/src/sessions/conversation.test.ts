import { AGENTS, type Agent, type ServerFrame } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { framesOf, textOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';

/** The tool with which each agent runs a command. */
const SHELL: Readonly<Record<Agent, { readonly name: string; readonly argument: string }>> = {
  deictic: { name: 'shell', argument: 'command' },
  'claude-code': { name: 'Bash', argument: 'command' },
  codex: { name: 'exec_command', argument: 'cmd' },
};
const USAGE = { input_tokens: 1200, output_tokens: 34 };

const fixture = useSessionFixture({
  rules: [
    ...AGENTS.map((agent) => ({
      when: { user: `with ${agent} write (\\S+) into a file` },
      reply: {
        tool_calls: [
          {
            name: SHELL[agent].name,
            arguments: { [SHELL[agent].argument]: 'echo written-$1 > kept.txt; cat kept.txt' },
          },
        ],
        usage: USAGE,
      },
    })),
    { when: { tool: '(written-\\w+)' }, reply: { text: ['The file says ', '$1.'], usage: USAGE } },
    { when: { user: 'remember (\\S+)' }, reply: { text: ['Noted: ', '$1', '.'], usage: USAGE } },
    {
      when: { user: 'what did I ask' },
      reply: { text: 'You asked me to remember.', usage: USAGE },
    },
  ],
});

/** Fails unless the sequence numbers run from 1 without a gap, across resumes too. */
function expectGapless(frames: readonly ServerFrame[]): void {
  const seqs = frames.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
}

describe.concurrent.each([...AGENTS])('%s', (agent) => {
  test('keeps a conversation of three turns across a resume on a new VM', {
    timeout: 1_200_000,
  }, async () => {
    const session = await fixture().create(agent);
    const first = await fixture().attach(session);
    expect(first.frames[0]).toMatchObject({ type: 'ready', agent, resumed: false });

    const noted = await first.task(`Please remember zebra-of-${agent}`, 'one');
    expect(textOf(noted)).toContain(`Noted: zebra-of-${agent}.`);
    expect(framesOf(noted, 'task_started')).toMatchObject([{ id: 'one' }]);
    expect(framesOf(noted, 'task_completed')).toMatchObject([{ id: 'one', status: 'completed' }]);
    expect(framesOf(noted, 'usage')).toMatchObject([USAGE]);

    const written = await first.task(`Now with ${agent} write lion into a file`, 'two');
    expect(framesOf(written, 'tool_call')).toHaveLength(1);
    const [result] = framesOf(written, 'tool_result');
    expect(result?.content).toContain('written-lion');
    expect(textOf(written)).toContain('The file says written-lion.');
    const before = await fixture().sandboxOf(session);
    await first.close();

    const resumed = await fixture().sessions.resume({ chat_session_id: session.chat_session_id });
    expect(resumed.resumed_from.previous_status).toBe('active');
    expect(await fixture().sandboxOf(session)).not.toBe(before);
    expect((await fixture().account.client.sandboxes.get(before)).state).toBe('destroyed');

    const second = await fixture().attach(resumed, 0);
    expect(second.frames[0]).toMatchObject({ type: 'ready', agent, resumed: true });
    const asked = await second.task(`So what did I ask, ${agent}?`, 'three');
    expect(textOf(asked)).toContain('You asked me to remember.');
    // The replay has the frames from before the resume, and the third turn follows without a gap.
    expectGapless(second.frames);
    expect(framesOf(second.frames, 'task_completed').map(({ id }) => id)).toEqual([
      'one',
      'two',
      'three',
    ]);
    // The model received the whole conversation again.
    const bodies = fixture().models.requests.map(({ body }) => JSON.stringify(body));
    const last = bodies.findLast((body) => body.includes(`what did I ask, ${agent}`));
    expect(last).toContain(`zebra-of-${agent}`);

    const from = second.frames.length;
    second.connection.exec('cat kept.txt', { id: 'four' });
    await second.until('exit', ({ id }) => id === 'four', from);
    const printed = framesOf(second.frames.slice(from), 'stdout').map(({ data }) => data);
    expect(printed.join('')).toBe('written-lion\n');

    await fixture().sessions.delete(session.chat_session_id);
    const ended = await fixture().sessions.get(session.chat_session_id);
    expect(ended).toMatchObject({ status: 'completed' });
  });
});

test('every request to the model carried the real key', () => {
  const { models, key } = fixture();
  expect(models.requests.length).toBeGreaterThan(0);
  for (const { headers } of models.requests) {
    expect([headers['x-api-key'], headers.authorization]).toContain(
      headers['x-api-key'] === undefined ? `Bearer ${key}` : key,
    );
  }
});
