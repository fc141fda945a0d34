import { describe, expect, test } from 'vitest';
import { type Refusal, useSessionWorld } from '../../../test/session-world.ts';

const world = useSessionWorld();
const OLD = { kind: 'codex', version: '1.0.0' };
const NEW = { kind: 'codex', version: '1.1.0' };
const CODEX = { llm: { vendor: 'openai', model: 'gpt-5.5' } };

/** Has the first worker carry the old build, and a second one the new build. */
async function twoBuilds() {
  const { harness, worker } = world();
  worker.agents = [OLD];
  await worker.register(harness.plane.url);
  return harness.addWorker('w2', (other) => {
    other.agents = [NEW];
    other.memoryMib = 65_536;
  });
}

describe('agent.version', () => {
  test('places the session on a worker whose image carries this build', async () => {
    const other = await twoBuilds();
    const { worker } = world();
    const create = async (agent: object) =>
      expect((await world().create({ ...CODEX, agent })).status).toBe(201);
    await create(OLD);
    expect(worker.placed.map(({ placement }) => placement.agent?.version)).toEqual(['1.0.0']);
    await create(NEW);
    expect(other.placed.map(({ placement }) => placement.agent?.version)).toEqual(['1.1.0']);
    await create({ kind: 'codex' });
    const versions = [...worker.placed, ...other.placed].map(
      ({ placement }) => placement.agent?.version,
    );
    expect(versions.toSorted()).toEqual(['1.0.0', '1.1.0', undefined]);
  });

  test('holds for a resume, which is refused when no image carries the build any more', async () => {
    const { harness, worker, account } = world();
    worker.agents = [OLD];
    await worker.register(harness.plane.url);
    const { body } = await world().create({ ...CODEX, agent: OLD });
    const chat_session_id = String(body.chat_session_id);
    const resume = () =>
      harness.call('POST', '/v1/sessions/resume', {
        key: account.key,
        json: { chat_session_id },
      });
    expect((await resume()).status).toBe(200);
    expect(world().placed.placement.agent?.version).toBe('1.0.0');
    worker.agents = [NEW];
    await worker.heartbeat(harness.plane.url);
    const refused = await resume();
    expect(refused).toMatchObject({ status: 400, body: { code: 'agent_version_unavailable' } });
    expect(refused.text).toContain('1.0.0');
    expect((await harness.session(account.key, chat_session_id)).status).toBe('active');
  });

  test('is tried elsewhere when the worker has just lost the build', async () => {
    const { harness, worker } = world();
    worker.agents = [OLD];
    await worker.register(harness.plane.url);
    expect((await world().create({ ...CODEX, agent: OLD })).status).toBe(201);
    // Of two workers, the emptier one is tried first.
    const other = await harness.addWorker('w2', (double) => {
      double.agents = [OLD];
    });
    other.failures.set('create', 'agent_version_unavailable');
    expect((await world().create({ ...CODEX, agent: OLD })).status).toBe(201);
    expect(worker.placed).toHaveLength(2);
  });

  test('is 503 without any worker', async () => {
    const { harness, worker } = world();
    await harness.sql.query(`update workers set heartbeat_at = now() - interval '1 hour'`);
    await worker.stop();
    expect(await world().create({ ...CODEX, agent: OLD })).toMatchObject({
      status: 503,
      body: { code: 'no_workers' },
    });
  });
});

describe('refusals', () => {
  test.each<Refusal>([
    [
      'a build that no image carries',
      { agent: { kind: 'deictic', version: '9' } },
      400,
      'agent_version_unavailable',
    ],
    [
      'the build of another agent',
      { agent: { kind: 'deictic', version: '2.2.2' } },
      400,
      'agent_version_unavailable',
    ],
  ])('%s', (_, changes, status, code) => world().expectRefused(changes, status, code));

  test('name the version and those that exist', async () => {
    const { body } = await world().create({ agent: { kind: 'deictic', version: '9.9' } });
    expect(body.detail).toContain('"9.9"');
    expect(body.detail).toContain('1.1.1');
    expect(body.errors).toMatchObject([{ path: '/agent/version' }]);
  });
});
