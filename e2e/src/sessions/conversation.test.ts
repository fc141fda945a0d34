import {
  AGENTS,
  type Agent,
  addDays,
  dayOf,
  type ServerFrame,
  type SessionAccess,
} from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { framesOf, textOf } from '../../test/sessions/session-client.ts';
import { SessionFixture, useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

/** The tool with which each agent runs a command. */
const SHELL: Readonly<Record<Agent, { readonly name: string; readonly argument: string }>> = {
  deictic: { name: 'shell', argument: 'command' },
  'claude-code': { name: 'Bash', argument: 'command' },
  codex: { name: 'exec_command', argument: 'cmd' },
};
/** The only tools of a limited session, none of which runs commands. */
const LIMITS: Readonly<Record<Agent, string[]>> = {
  deictic: ['read_file'],
  'claude-code': ['Read'],
  codex: ['apply_patch'],
};
/** How the program of an agent reports its version. */
const VERSION_COMMANDS: Readonly<Partial<Record<Agent, string>>> = {
  'claude-code': 'claude --version',
  codex: 'codex --version',
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
    { when: { tool: 'o such tool|no tool|unsupported call' }, reply: { text: 'It is not there.' } },
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

describe.concurrent.each([...AGENTS])('%s with a version and a list of tools', (agent) => {
  test('is that build, and cannot use another tool, at a resume either', {
    timeout: 900_000,
  }, async () => {
    const { client } = fixture().account;
    const { versions } = await client.templates.get('deictic');
    expect(versions[agent]).toHaveLength(1);
    const [version] = versions[agent];
    const session = await fixture().create(agent, {
      agent: { kind: agent, ...(version === undefined ? {} : { version }) },
      app: { id: 'limited', capability_sets: { default: { tools: LIMITS[agent] } } },
    });
    const command = VERSION_COMMANDS[agent];
    if (command !== undefined) {
      const { output } = await client.sandboxes.exec(await fixture().sandboxOf(session), command);
      expect(output.match(/\d+\.\d+\.\d+/)?.[0]).toBe(version);
    }
    await expectNoShell(session, 'at first');
    await expectNoShell(await fixture().sessions.resume(session), 'resumed');
  });

  /** Has the model call the shell all the same. */
  async function expectNoShell(session: SessionAccess, when: string): Promise<void> {
    const attached = await fixture().attach(session);
    const prompt = `${when} with ${agent} write tiger into a file`;
    const turn = await attached.task(prompt, when);
    expect(textOf(turn), attached.summary()).toContain('It is not there.');
    const bodies = fixture().models.requests.map(({ body }) => JSON.stringify(body));
    const asked = bodies.filter((body) => body.includes(prompt));
    expect(asked.length).toBeGreaterThan(1);
    for (const body of asked) expect(toolNames(body)).not.toContain(SHELL[agent].name);
    const { exit_code } = await fixture().account.client.sandboxes.exec(
      await fixture().sandboxOf(session),
      'test -e /home/agent/work/kept.txt',
    );
    expect(exit_code).toBe(1);
    await attached.close();
  }
});

/** The names of the tools that a request offers to the model. */
function toolNames(body: string): (string | undefined)[] {
  const { tools = [] } = JSON.parse(body) as { readonly tools?: { readonly name?: string }[] };
  return tools.map(({ name }) => name);
}

test('every request to the model carried the real key', () => {
  const { models, key } = fixture();
  expect(models.requests.length).toBeGreaterThan(0);
  for (const { headers } of models.requests) {
    expect([headers['x-api-key'], headers.authorization]).toContain(
      headers['x-api-key'] === undefined ? `Bearer ${key}` : key,
    );
  }
});

test('what a session and a sandbox used shows while they run, and adds up when they have ended', {
  timeout: 300_000,
}, async () => {
  const own = await SessionFixture.start({
    rules: [
      {
        when: { user: 'look around' },
        reply: { tool_calls: [{ name: 'shell', arguments: { command: 'pwd' } }], usage: USAGE },
      },
      { reply: { text: 'Done.', usage: USAGE } },
    ],
  });
  const { sandboxes, usage } = own.account.client;
  const { dashboard } = shared.client(own.account.token);
  const firstDay = dayOf(Date.now());
  const { period } = await usage.current();
  /** What was recorded since the test began, on days that may be of two months. */
  const recorded = async () => {
    const days = { from: firstDay, to: addDays(dayOf(Date.now()), 1) };
    const history = (await usage.history(days)).entries;
    const daily = (await dashboard.dailyUsage(days)).entries;
    const total = <Entry>(entries: readonly Entry[], of: (entry: Entry) => number) =>
      entries.reduce((sum, entry) => sum + of(entry), 0);
    return {
      sandbox_count: total(history, (day) => day.infra_usage.sandbox_count),
      cpu_seconds: total(history, (day) => day.infra_usage.cpu_seconds),
      cost_usd: total(history, (day) => day.infra_usage.credits_used_usd),
      input_tokens: total(daily, (day) => day.input_tokens),
      output_tokens: total(daily, (day) => day.output_tokens),
    };
  };
  try {
    const session = await own.create('deictic');
    const client = await own.attach(session);
    const burner = await sandboxes.create({ template: 'standard', idle_timeout_seconds: 300 });
    expect(textOf(await client.task('Please look around', 'look'))).toBe('Done.');
    await sandboxes.exec(burner.vm_id, 'timeout 2 sh -c "while :; do :; done"; true');
    const used = { sandbox_count: 2, input_tokens: 2400, output_tokens: 68 };
    // Recorded at most 15 seconds behind; more on a loaded machine.
    await expect.poll(recorded, { timeout: 90_000, interval: 1_000 }).toMatchObject(used);
    const overview = await dashboard.overview();
    // The overview is of the current month only.
    if ((await usage.current()).period === period) {
      expect(overview).toMatchObject({ ...used, billable_tool_calls: 1 });
    }
    const busy = async () => (await dashboard.sandboxes()).sandboxes.map((one) => one.cpu_seconds);
    await expect
      .poll(async () => Math.min(...(await busy())), { timeout: 90_000, interval: 1_000 })
      .toBeGreaterThan(0.5);

    await sandboxes.delete(burner.vm_id);
    await own.sessions.delete(session.chat_session_id);
    const sums = async () => {
      const list = (await dashboard.sandboxes()).sandboxes;
      const sum = (of: (one: (typeof list)[number]) => number) =>
        list.reduce((total, one) => total + of(one), 0);
      const { cpu_seconds, cost_usd } = await recorded();
      return {
        ended: list.every(({ state }) => state === 'destroyed'),
        cpu: Math.abs(sum((one) => one.cpu_seconds) - cpu_seconds).toFixed(6),
        cost: Math.abs(sum((one) => one.cost_usd) - cost_usd).toFixed(9),
        tokens: sum((one) => one.input_tokens + one.output_tokens),
      };
    };
    await expect
      .poll(sums, { timeout: 90_000, interval: 1_000 })
      .toEqual({ ended: true, cpu: '0.000000', cost: '0.000000000', tokens: 2468 });
  } finally {
    await own.end();
  }
});
