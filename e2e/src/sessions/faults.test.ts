import { once } from 'node:events';
import { AGENTS, type Agent } from '@svc/contract';
import { expect, test } from 'vitest';
import { ownService } from '../faults/own-service.ts';
import { vmProcessOf } from '../machine/vms.ts';
import { withEachAgent } from './each-agent.ts';
import { spawnRuntimeHost } from './runtime-host.ts';
import { framesOf, type Talk, textOf } from './talk.ts';
import { SessionWorld } from './world.ts';

const WORDS = Array.from({ length: 80 }, (_, index) => `word${index} `);
/** Told to the end by nobody: whatever happens to its teller happens in the middle. */
const ENDLESS = Array.from({ length: 5_000 }, (_, index) => `word${index} `);
const SCRIPT = {
  rules: [
    // Before the stories: an agent may say a prompt that was not answered again, together with the next.
    { when: { user: 'remember (\\w+)' }, reply: { text: 'Noted: $1.' } },
    { when: { user: 'Go on' }, reply: { text: 'On we go.' } },
    ...AGENTS.map((agent) => ({
      when: { user: `endless story, ${agent}` },
      times: 1,
      reply: { text: ENDLESS, chunk_delay_ms: 250 },
    })),
    { when: { user: 'endless story' }, reply: { text: 'It has an end after all.' } },
    { when: { user: 'long story' }, reply: { text: WORDS, chunk_delay_ms: 250 } },
  ],
};
const TIMEOUT = { timeout: 1_200_000 };

const own = ownService(1);

/** A session that has noted something, and is now in the middle of a turn. */
async function inMidTurn(world: SessionWorld, agent: Agent) {
  const session = await world.create(agent);
  const talk = await world.attach(session);
  await talk.task(`Please remember emu-of-${agent}`, 'kept');
  const from = talk.frames.length;
  const vm = await vmProcessOf(own.service.dataDir, await world.sandboxOf(session));
  talk.connection.task(`An endless story, ${agent}`, { id: 'story' });
  await talk.until('text_delta', ({ data }) => data.includes('word'), from);
  return { agent, session, talk, vm };
}

function completed(talk: Talk): (string | undefined)[] {
  return framesOf(talk.frames, 'task_completed').map(({ id }) => id);
}

test(
  'a service killed in mid-turn: VMs and turns go on, clients get the rest',
  TIMEOUT,
  async () => {
    const world = await SessionWorld.start(SCRIPT, own.service);
    const told = await withEachAgent((agent) => inMidTurn(world, agent));
    for (const { talk } of told) expect(completed(talk)).toEqual(['kept']);
    await own.service.kill9();
    await own.service.startAgain();
    await withEachAgent(async (agent) => {
      const { session, talk, vm } = told[AGENTS.indexOf(agent)] ?? expect.unreachable();
      // The gateway died with the service, so the model's stream was cut: the agent says so, or asks again.
      await talk.until('task_completed', ({ id }) => id === 'story');
      expect(await vmProcessOf(own.service.dataDir, await world.sandboxOf(session))).toBe(vm);
      expect(textOf(await talk.task('Please remember yak', 'next'))).toContain('Noted: yak.');
      expect(completed(talk)).toEqual(['kept', 'story', 'next']);
      expect(talk.seqs).toEqual(talk.seqs.map((_, index) => index + 1));
    });
    await world.end();
  },
);

test(
  'a VM killed in mid-turn: the session has failed, and resumes from its last turn',
  TIMEOUT,
  async () => {
    const world = await SessionWorld.start(SCRIPT, own.service);
    await withEachAgent(async (agent) => {
      const { session, vm } = await inMidTurn(world, agent);
      const { chat_session_id } = session;
      process.kill(vm, 'SIGKILL');
      const status = async () => (await world.sessions.get(chat_session_id)).status;
      await expect.poll(status).toBe('failed');

      const resumed = await world.sessions.resume({ chat_session_id });
      expect(resumed.resumed_from.previous_status).toBe('failed');
      const again = await world.attach(resumed, 0);
      const asked = await again.task(`Go on, ${agent}`, 'after');
      // What was said before is replayed, that of the lost turn too as far as it was shown.
      expect(textOf(asked)).toMatch(/On we go\.$/);
      const bodies = world.models.requests.map(({ body }) => JSON.stringify(body));
      const last = bodies.findLast((body) => body.includes(`Go on, ${agent}`));
      expect(last).toContain(`emu-of-${agent}`);
      expect(completed(again)).toEqual(['kept', 'after']);
    });
    await world.end();
  },
);

test(
  'a runtime host killed and restarted: its clients reconnect and lose nothing',
  TIMEOUT,
  async () => {
    const world = await SessionWorld.start(SCRIPT, own.service);
    const session = await world.create('deictic');
    const host = await spawnRuntimeHost(own.service);
    const talk = await world.attach({ ...session, connect_url: host.urlOf(session) });
    const turn = talk.task('A long story, please', 'story');
    await talk.until('text_delta', ({ data }) => data.includes('word5'));
    host.process.kill('SIGKILL');
    await once(host.process, 'exit');
    const second = await spawnRuntimeHost(own.service, host.port);
    const frames = await turn;
    expect(textOf(frames)).toBe(WORDS.join(''));
    expect(talk.seqs).toEqual(talk.seqs.map((_, index) => index + 1));
    await world.end();
    second.process.kill('SIGTERM');
    await once(second.process, 'exit');
  },
);
