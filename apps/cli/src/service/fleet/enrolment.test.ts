import { afterAll, beforeAll, expect, test } from 'vitest';
import { START_MS, TestFleet } from '../../../test/fleet.ts';

let fleet: TestFleet;

beforeAll(async () => {
  fleet = await TestFleet.start();
  await fleet.controlPlane('first');
  await fleet.controlPlane('second');
}, START_MS);
afterAll(() => fleet?.[Symbol.asyncDispose](), START_MS);

const json = async (...args: readonly string[]) =>
  JSON.parse((await fleet.onControlPlane([...args, '--json'])).output) as Record<string, unknown>[];

test('a component without a token, or with one that is no token, says how to get one', async () => {
  for (const settings of [{}, { SVC_ENROLMENT_TOKEN: 'nonsense' }] as Record<string, string>[]) {
    await expect(fleet.runtime('stranger', settings)).rejects.toThrow(
      /svc runtime token --id \S+ [\s\S]*SVC_ENROLMENT_TOKEN/,
    );
  }
  expect(await json('runtime', 'ls')).toEqual([]);
});

test('a token enrols one component, which starts again without it', async () => {
  const token = await fleet.token('runtime');
  const settings = { SVC_ENROLMENT_TOKEN: token };
  const host = await fleet.runtime('one', settings);
  expect(await host.stop('SIGTERM')).toBe(0);
  await expect(fleet.runtime('two', settings)).rejects.toThrow(/enrolment_refused/);
  const again = await fleet.runtime('one');
  expect(await json('runtime', 'ls')).toMatchObject([{ kind: 'runtime', revoked_at: null }]);
  expect(await again.stop('SIGTERM')).toBe(0);
});

test('a token for workers enrols no runtime host', async () => {
  const token = await fleet.token('worker');
  await expect(fleet.runtime('three', { SVC_ENROLMENT_TOKEN: token })).rejects.toThrow(
    /did not start/,
  );
});

test('a component that is revoked is refused, and is back with a token for it', async () => {
  const [host] = await json('runtime', 'ls');
  const id = String(host?.component_id);
  expect(await fleet.onControlPlane(['runtime', 'revoke', id])).toMatchObject({
    code: 0,
    output: expect.stringContaining(`svc runtime token --id ${id}`),
  });
  expect(await fleet.onControlPlane(['runtime', 'revoke', id])).toMatchObject({
    code: 1,
    errors: expect.stringContaining('not_enrolled'),
  });
  expect(await json('runtime', 'ls')).toMatchObject([{ revoked_at: expect.any(String) }]);
  const unbound = await fleet.token('runtime');
  await expect(fleet.runtime('one', { SVC_ENROLMENT_TOKEN: unbound })).rejects.toThrow(
    /enrolment_refused/,
  );
  const bound = await fleet.token('runtime', ['--id', id, '--valid-for', '10m']);
  const back = await fleet.runtime('one', { SVC_ENROLMENT_TOKEN: bound });
  expect(await json('runtime', 'ls')).toMatchObject([{ component_id: id, revoked_at: null }]);
  expect(await back.stop('SIGTERM')).toBe(0);
});

test('only a machine with the secret of the control planes makes tokens', async () => {
  expect(await fleet.onWorker(['worker', 'token'])).toMatchObject({
    code: 1,
    errors: expect.stringContaining('no_cluster_secret'),
  });
});
