import { EventEmitter } from 'node:events';
import { CONTROL_PLANE_NAME, ServiceError } from '@svc/contract';
import { createTokenMinter, generateKeyPair, type KeyPair } from '@svc/service-kit';
import { settledWithin } from '@svc/service-kit/concurrency';
import type { ComponentKey } from '@svc/store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  type ComponentAuthenticator,
  createComponentAuthenticator,
} from './component-authenticator.ts';

const IDS = ['w1', 'w2'];

let key: KeyPair;
/** The keys that are enrolled, and how often each was read. */
let enrolled: Map<string, ComponentKey>;
let reads: string[];
let failure: Error | undefined;
let authenticator: ComponentAuthenticator;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  key = await generateKeyPair();
  const found: ComponentKey = { kind: 'worker', keyId: key.id, publicKey: key.publicKey.x };
  enrolled = new Map(IDS.map((id) => [id, found]));
  [reads, failure] = [[], undefined];
  authenticator = createComponentAuthenticator({
    keyOf: async (id) => {
      reads.push(id);
      if (failure !== undefined) throw failure;
      return enrolled.get(id);
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});

/** An answer that is not complete until its `raw` emits `close`. */
function unanswered(): FastifyReply {
  return { raw: new EventEmitter() } as FastifyReply;
}

async function call(
  hook: keyof ComponentAuthenticator,
  id = 'w1',
  signer = key,
  reply = unanswered(),
) {
  const token = await createTokenMinter(signer, id)(CONTROL_PLANE_NAME);
  const request = {
    headers: { authorization: `Bearer ${token}` },
    routeOptions: { url: '/route', bodyLimit: 1024 },
    raw: { complete: true },
  } as FastifyRequest;
  await authenticator[hook](request, reply);
  return request.component;
}

const refused = { code: 'component_unauthorized' };

test('the key of a worker is read for each of its calls, and for heartbeats every 10 seconds', async () => {
  for (let time = 0; time < 3; time += 1) {
    expect(await call('heartbeat')).toEqual({ kind: 'worker', id: 'w1' });
    expect(await call('heartbeat', 'w2')).toEqual({ kind: 'worker', id: 'w2' });
  }
  expect(reads).toEqual(IDS);
  vi.advanceTimersByTime(9_999);
  await call('heartbeat');
  expect(reads).toEqual(IDS);
  vi.advanceTimersByTime(1);
  await call('heartbeat');
  expect(reads).toEqual([...IDS, 'w1']);
  for (let time = 0; time < 2; time += 1) await call('worker');
  expect(reads).toEqual([...IDS, 'w1', 'w1', 'w1']);
});

test('a worker without a key is looked for each time, and its heartbeats are taken once it has enrolled', async () => {
  const late = enrolled.get('w1');
  enrolled.delete('w1');
  for (let time = 0; time < 2; time += 1) {
    await expect(call('heartbeat')).rejects.toMatchObject(refused);
  }
  if (late !== undefined) enrolled.set('w1', late);
  expect(await call('heartbeat')).toEqual({ kind: 'worker', id: 'w1' });
  expect(reads).toEqual(['w1', 'w1', 'w1']);
});

test('a revoked worker sends no heartbeats 10 seconds later', async () => {
  await call('heartbeat');
  enrolled.delete('w1');
  vi.advanceTimersByTime(10_000);
  await expect(call('heartbeat')).rejects.toMatchObject(refused);
});

test('a token that another key has signed is refused, also if it names the enrolled key', async () => {
  const other = await generateKeyPair();
  await expect(call('worker', 'w1', other)).rejects.toMatchObject(refused);
  await expect(call('worker', 'w1', { ...other, id: key.id })).rejects.toMatchObject({
    ...refused,
    cause: { code: 'unauthorized' },
  });
  // The thumbprint of a key that has been replaced names no key of the component.
  await expect(call('worker', 'w1', { ...key, id: other.id })).rejects.toMatchObject(refused);
});

test.each([new Error('the database is gone'), new ServiceError('no_capacity')])(
  'a failure to read the key is no refusal: %s',
  async (error) => {
    failure = error;
    await expect(call('worker')).rejects.toBe(error);
  },
);

test('a component has a limited number of requests in progress, whatever others have', async () => {
  const first = unanswered();
  await call('worker', 'w1', key, first);
  for (let time = 1; time < 128; time += 1) await call('heartbeat');
  await expect(call('heartbeat')).rejects.toMatchObject({ code: 'too_many_requests' });
  await expect(call('worker')).rejects.toMatchObject({ code: 'too_many_requests' });
  await call('heartbeat', 'w2');
  first.raw.emit('close');
  await call('heartbeat');
});

test('requests with large answers wait for those of the same worker', async () => {
  const first = unanswered();
  await call('workerInTurn', 'w1', key, first);
  await call('workerInTurn');
  const third = call('workerInTurn');
  await call('workerInTurn', 'w2');
  await call('worker');
  await expect(settledWithin(third, 0)).resolves.toBe(false);
  first.raw.emit('close');
  expect(await third).toEqual({ kind: 'worker', id: 'w1' });
});
