import { once } from 'node:events';
import { expect, test } from 'vitest';
import { ownService } from '../faults/own-service.ts';
import { vmProcessOf } from '../machine/vms.ts';
import { spawnRuntimeHost } from './runtime-host.ts';
import { framesOf, textOf } from './talk.ts';
import { SessionWorld } from './world.ts';

const WORDS = Array.from({ length: 80 }, (_, index) => `word${index} `);
const SCRIPT = {
  rules: [
    { when: { user: 'long story' }, reply: { text: WORDS, chunk_delay_ms: 250 } },
    { when: { user: 'remember (\\w+)' }, reply: { text: 'Noted: $1.' } },
  ],
};

const own = ownService(1);

test('a service killed in mid-turn: VM and turn go on, clients get the rest', {
  timeout: 600_000,
}, async () => {
  const world = await SessionWorld.start(SCRIPT, own.service);
  const session = await world.create('deictic');
  const talk = await world.attach(session);
  const vmId = await world.sandboxOf(session);
  const vm = await vmProcessOf(own.service.dataDir, vmId);
  const turn = talk.task('A long story, please', 'story');
  await talk.until('text_delta', ({ data }) => data.includes('word5'));
  await own.service.kill9();
  await own.service.startAgain();
  const frames = await turn;
  expect(framesOf(frames, 'task_completed')).toMatchObject([{ id: 'story' }]);
  expect(talk.seqs).toEqual(talk.seqs.map((_, index) => index + 1));
  expect(await vmProcessOf(own.service.dataDir, vmId)).toBe(vm);
  // The gateway died with the service, so the model's stream was cut: the agent says so, or asks again.
  expect(textOf(await talk.task('Please remember yak', 'next'))).toContain('Noted: yak.');
  await world.end();
});

test('a VM killed in mid-turn: the session has failed, and resumes from its last turn', {
  timeout: 600_000,
}, async () => {
  const world = await SessionWorld.start(SCRIPT, own.service);
  const session = await world.create('deictic');
  const talk = await world.attach(session);
  await talk.task('Please remember okapi', 'kept');
  const started = talk.frames.length;
  talk.connection.task('A long story, please', { id: 'lost' });
  await talk.until('text_delta', () => true, started);
  process.kill(await vmProcessOf(own.service.dataDir, await world.sandboxOf(session)), 'SIGKILL');
  await expect
    .poll(async () => (await world.sessions.get(session.chat_session_id)).status, {
      timeout: 60_000,
    })
    .toBe('failed');

  const resumed = await world.sessions.resume({ chat_session_id: session.chat_session_id });
  expect(resumed.resumed_from.previous_status).toBe('failed');
  const again = await world.attach(resumed, 0);
  const asked = await again.task('Go on', 'after');
  expect(framesOf(asked, 'task_completed').at(-1)).toMatchObject({
    id: 'after',
    status: 'completed',
  });
  expect(JSON.stringify(world.models.requests.at(-1)?.body)).toContain('okapi');
  const completed = framesOf(again.frames, 'task_completed').map(({ id }) => id);
  expect(completed).toEqual(['kept', 'after']);
  await world.end();
});

test('a runtime host killed and restarted: its clients reconnect and lose nothing', {
  timeout: 600_000,
}, async () => {
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
});
