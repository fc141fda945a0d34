import { Readable } from 'node:stream';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

const ACCOUNTS = 17;
/** More than one account may have in progress; all accounts together have more than a thousand. */
const CALLS = 70;
/** Enough for a thousand handshakes on a busy machine. */
const ATTACK_MS = 240_000;
const TEST_MS = 600_000;

interface Account {
  readonly key: string;
  readonly vmId: string;
}

let harness: Harness;
let worker: WorkerDouble;
let attackers: Account[];
let neighbour: Account;
let leave: AbortController;
let attack: Promise<unknown>;
/** Calls of the attackers that have ended, for instance at their deadline. */
let ends: number;

beforeAll(async () => {
  harness = await Harness.start();
  worker = await harness.addWorker('w1', (double) => {
    double.memoryMib = 1_000_000;
  });
  attackers = await Promise.all(Array.from({ length: ACCOUNTS }, () => account()));
  neighbour = await account();
});
afterAll(() => harness?.[Symbol.asyncDispose]());

async function account(): Promise<Account> {
  const { key } = await harness.signUp();
  const vmId = await harness.create(key, { agent: 'claude-code', llm_key: 'k' });
  return { key, vmId };
}

/** Begins calls that do not end, from each account as many as it may have, until the attackers leave. */
async function attackWith(by: Account[], method: string, path: string, json?: object) {
  leave = new AbortController();
  ends = 0;
  const { signal } = leave;
  const refusals = new Set<Account>();
  const hold = async (attacker: Account) => {
    const request = { key: attacker.key, signal, ...(json && { json }) };
    while (!signal.aborted) {
      // On a busy machine some of so many handshakes time out.
      const answer = await harness
        .call(method, `/v1/sandboxes/${attacker.vmId}/${path}`, request)
        .catch(() => undefined);
      if (answer?.status === 429) {
        refusals.add(attacker);
        return;
      }
      ends += 1;
    }
  };
  attack = Promise.all(
    by.flatMap((attacker) => Array.from({ length: CALLS }, () => hold(attacker))),
  );
  await expect.poll(() => refusals.size, { timeout: ATTACK_MS }).toBe(by.length);
}

/** The calls of the attackers that end before `call` does, which so may have waited for them. */
async function endsDuring(call: Promise<unknown>): Promise<number> {
  const before = ends;
  await call;
  return ends - before;
}

/** Creates a sandbox, lists it and changes another one. */
async function expectUse({ key, vmId }: Account): Promise<void> {
  // Its last heartbeat may be old by now.
  expect((await worker.register(harness.plane.url)).status).toBe(200);
  await expect.poll(() => endsDuring(harness.create(key)), { timeout: ATTACK_MS }).toBe(0);
  expect((await harness.call('GET', '/v1/sandboxes', { key })).body).toContainEqual(
    expect.objectContaining({ vm_id: vmId, state: 'running' }),
  );
  for (const change of ['pause', 'resume', 'cancel']) {
    const answer = await harness.call('POST', `/v1/sandboxes/${vmId}/${change}`, { key });
    expect(answer.status, change).toBe(200);
  }
}

afterEach(async () => {
  leave.abort();
  await attack;
});

describe('a worker on which many accounts have as many calls as they can', () => {
  test(
    'creates, lists and changes sandboxes of a neighbour while guests do not send their logs',
    async () => {
      worker.lies.set('logs', () => ({ body: new Readable({ read: () => undefined }) }));
      await attackWith(attackers.slice(0, 9), 'GET', 'logs');
      await expectUse(neighbour);
      worker.lies.delete('logs');
    },
    TEST_MS,
  );

  test(
    'does the same, runs the commands of a neighbour, and deletes the sandboxes of all, while commands do not end',
    async () => {
      await attackWith(attackers, 'POST', 'exec', { command: 'hang' });
      await expectUse(neighbour);
      const exec = async () => {
        const request = { key: neighbour.key, json: { command: 'true' } };
        const answer = await harness.call('POST', `/v1/sandboxes/${neighbour.vmId}/exec`, request);
        expect(answer).toMatchObject({ status: 200, body: { exit_code: 0 } });
      };
      await expect.poll(() => endsDuring(exec()), { timeout: ATTACK_MS }).toBe(0);
      for (const { key, vmId } of [neighbour, ...attackers]) {
        const answer = await harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key });
        expect(answer).toMatchObject({ status: 200, body: { state: 'destroyed' } });
      }
    },
    TEST_MS,
  );
});
