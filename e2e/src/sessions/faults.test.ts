import { AGENTS, type Agent, type SessionAccess } from '@svc/contract';
import { RuntimeHost, vmPid } from '@svc/service-driver';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownService } from '../../test/own-service.ts';
import { forEachAgent, resultOf } from '../../test/sessions/for-each-agent.ts';
import {
  changeHome,
  conversationBefore,
  LARGE_TURNS,
  listHome,
  numbered,
  turnMessages,
  watchObjects,
} from '../../test/sessions/large-turns.ts';
import { framesOf, type SessionClient, textOf } from '../../test/sessions/session-client.ts';
import { SessionFixture } from '../../test/sessions/session-fixture.ts';

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index} `);
/** Too long to ever end, so that every fault strikes in the middle of it. */
const ENDLESS = Array.from({ length: 5_000 }, (_, index) => `word${index} `);
const SCRIPT = {
  rules: [
    // Before the stories, because an agent may repeat an unanswered prompt together with the next one.
    { when: { user: 'remember (\\w+)' }, reply: { text: 'Noted: $1.' } },
    { when: { user: 'Go on' }, reply: { text: 'On we go.' } },
    ...AGENTS.map((agent) => ({
      when: { user: `endless story, ${agent}` },
      times: 1,
      reply: { text: ENDLESS, chunk_delay_ms: 250 },
    })),
    { when: { user: 'endless story' }, reply: { text: 'It has an end after all.' } },
    { when: { user: 'endless tale' }, reply: { text: ENDLESS, chunk_delay_ms: 250 } },
    { when: { user: 'long story' }, reply: { text: WORDS, chunk_delay_ms: 250 } },
  ],
};
const TIMEOUT = { timeout: 1_200_000 };

const own = ownService(1);

/** A session of an agent with one completed turn, and a client of it. */
interface Started {
  readonly agent: Agent;
  readonly session: SessionAccess;
  readonly client: SessionClient;
}

function completed(client: SessionClient): (string | undefined)[] {
  return framesOf(client.frames, 'task_completed').map(({ id }) => id);
}

describe('with every agent', () => {
  let fixture: SessionFixture;
  let sessions: Started[];

  beforeAll(async () => {
    fixture = await SessionFixture.start(SCRIPT, own.access);
    sessions = await forEachAgent(async (agent) => {
      const session = await fixture.create(agent);
      const client = await fixture.attach(session);
      await client.task(`Please remember emu-of-${agent}`, 'kept');
      expect(completed(client)).toEqual(['kept']);
      return { agent, session, client };
    });
  }, TIMEOUT.timeout);
  afterAll(() => fixture?.end());

  /** Begins a turn that does not end by itself. Returns the process of the VM. */
  async function begin({ agent, session, client }: Started, id: string): Promise<number> {
    const vm = await vmPid(own.service.dataDir, await fixture.sandboxOf(session));
    const from = client.frames.length;
    client.connection.task(`The endless ${id}, ${agent}`, { id });
    await client.until('text_delta', ({ data }) => data.includes('word'), from);
    return vm;
  }

  test(
    'a service killed during a turn: VMs and turns continue, and clients get the remaining frames',
    TIMEOUT,
    async () => {
      const before = sessions.map(({ client }) => completed(client));
      const vms = await forEachAgent((agent) => begin(resultOf(sessions, agent), 'story'));
      expect(sessions.map(({ client }) => completed(client))).toEqual(before);
      await own.service.kill();
      await own.service.startAgain();
      await forEachAgent(async (agent) => {
        const { session, client } = resultOf(sessions, agent);
        // The gateway died with the service and truncated the model's stream. The agent reports that or retries.
        await client.until('task_completed', ({ id }) => id === 'story');
        expect(await vmPid(own.service.dataDir, await fixture.sandboxOf(session))).toBe(
          resultOf(vms, agent),
        );
        expect(textOf(await client.task('Please remember yak', 'next'))).toContain('Noted: yak.');
        expect(completed(client)).toEqual([...resultOf(before, agent), 'story', 'next']);
        expect(client.seqs).toEqual(client.seqs.map((_, seq) => seq + 1));
      });
    },
  );

  test(
    'a VM killed during a turn: the session fails, and resumes from its last completed turn',
    TIMEOUT,
    async () => {
      await forEachAgent(async (agent) => {
        const started = resultOf(sessions, agent);
        const { chat_session_id } = started.session;
        const before = completed(started.client);
        process.kill(await begin(started, 'tale'), 'SIGKILL');
        const status = async () => (await fixture.sessions.get(chat_session_id)).status;
        await expect.poll(status).toBe('failed');

        const resumed = await fixture.sessions.resume({ chat_session_id });
        expect(resumed.resumed_from.previous_status).toBe('failed');
        const again = await fixture.attach(resumed, 0);
        const asked = await again.task(`Go on, ${agent}`, 'after');
        // The replay has all earlier frames, including those of the lost turn that clients have seen.
        expect(textOf(asked)).toMatch(/On we go\.$/);
        const bodies = fixture.models.requests.map(({ body }) => JSON.stringify(body));
        const last = bodies.findLast((body) => body.includes(`Go on, ${agent}`));
        expect(last).toContain(`emu-of-${agent}`);
        expect(completed(again)).toEqual([...before, 'after']);
        sessions[AGENTS.indexOf(agent)] = { agent, session: resumed, client: again };
      });
    },
  );
});

/** Moments in the commit of a large turn, and who is killed then besides the VM, which loses what was not committed. */
const STEPS = [
  { name: 'one', reached: 'answered', service: 'dies' },
  { name: 'two', reached: 1, service: 'dies' },
  { name: 'three', reached: 3, service: 'survives' },
  { name: 'four', reached: 2, service: 'dies first, and commits the turn later' },
  { name: 'five', reached: 'completed', service: 'dies' },
] as const;

test(
  'killed in the commit of a large turn, a session resumes with the bytes of its last committed turn',
  TIMEOUT,
  async () => {
    const { service } = own;
    const fixture = await SessionFixture.start(LARGE_TURNS, own.access);
    const session = await fixture.create('deictic');
    const { chat_session_id } = session;
    let client = await fixture.attach(session);
    await changeHome(client);
    await client.task('turn zero', 'zero');
    let committed = turnMessages('turn zero');
    // A turn that no client saw complete: it may be committed without the files that its VM did not give any more.
    let unsure: string[] = [];
    for (const { name, reached, service: fate } of STEPS) {
      const [prompt, before] = [`turn ${name}`, await listHome(client)];
      await changeHome(client);
      const after = await listHome(client);
      const vm = await vmPid(service.dataDir, await fixture.sandboxOf(session));
      const objects = await watchObjects(service.dataDir);
      client.connection.task(prompt, { id: name });
      if (reached === 'answered') {
        await client.until('text_delta', ({ data }) => data.includes(`the end of ${prompt}`));
      } else if (reached === 'completed') {
        await client.until('task_completed', ({ id }) => id === name);
      } else await objects.more(reached);
      if (fate !== 'survives') await service.kill();
      if (fate === 'dies first, and commits the turn later') {
        await service.startAgain();
        await client.until('task_completed', ({ id }) => id === name);
      }
      process.kill(vm, 'SIGKILL');
      await client.close();
      if (service.hasEnded) await service.startAgain();
      const status = async () => (await fixture.sessions.get(chat_session_id)).status;
      await expect.poll(status).toBe('failed');
      const known = conversationBefore(fixture, prompt);
      if (known.length > committed.length) committed = [...committed, ...unsure];
      expect(known).toEqual(committed);

      const seen = numbered(client);
      const isSeen = completed(client).includes(name);
      const resumed = await fixture.attach(await fixture.sessions.resume({ chat_session_id }), 0);
      const restored = await listHome(resumed);
      const isCommitted = isSeen || restored === after;
      expect(restored).toBe(isCommitted ? after : before);
      if (isCommitted) committed = [...committed, ...turnMessages(prompt)];
      unsure = isCommitted ? [] : turnMessages(prompt);
      await expect.poll(() => resumed.seqs.length).toBeGreaterThanOrEqual(seen.size);
      const replayed = numbered(resumed);
      for (const [seq, frame] of seen) expect(replayed.get(seq)).toEqual(frame);
      client = resumed;
    }
    await client.task('turn last', 'last');
    const known = conversationBefore(fixture, 'turn last');
    if (known.length > committed.length) committed = [...committed, ...unsure];
    expect(known).toEqual(committed);
    await fixture.end();
  },
);

test(
  'a runtime host killed and restarted: its clients reconnect and miss no frame',
  TIMEOUT,
  async () => {
    const fixture = await SessionFixture.start(SCRIPT, own.access);
    const session = await fixture.create('deictic');
    await using host = await RuntimeHost.start(own.service.address);
    const client = await fixture.attach({ ...session, connect_url: host.urlOf(session) });
    const turn = client.task('A long story, please', 'story');
    await client.until('text_delta', ({ data }) => data.includes('word5'));
    await host.kill();
    await host.startAgain();
    const frames = await turn;
    expect(textOf(frames)).toBe(WORDS.join(''));
    expect(client.seqs).toEqual(client.seqs.map((_, index) => index + 1));
    await fixture.end();
  },
);
