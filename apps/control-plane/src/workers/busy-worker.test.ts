import { Readable } from 'node:stream';
import type { WorkerDouble } from '@svc/worker-double';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';

const ACCOUNTS = 17;
/** More than one account may have in progress, and all accounts together more than the connections to a worker. */
const CALLS = 70;

interface Account {
  readonly key: string;
  readonly vmId: string;
  /** Calls of its own that were refused with 429. */
  refusals: number;
}

let harness: Harness;
let worker: WorkerDouble;
let attackers: Account[];
let neighbour: Account;
let leave: AbortController;
let attack: Promise<unknown>;

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
  return { key, vmId, refusals: 0 };
}

/** Begins a call that does not end, from each account as often as it can, until the attackers leave. */
async function attackWith(method: string, path: string, json?: object): Promise<void> {
  leave = new AbortController();
  const { signal } = leave;
  const repeat = async (attacker: Account) => {
    const request = { key: attacker.key, signal, ...(json && { json }) };
    while (!signal.aborted) {
      // On a busy machine some of so many handshakes time out.
      const answer = await harness
        .call(method, `/v1/sandboxes/${attacker.vmId}/${path}`, request)
        .catch(() => undefined);
      if (answer?.status === 429) attacker.refusals += 1;
    }
  };
  for (const attacker of attackers) attacker.refusals = 0;
  const calls = attackers.flatMap((attacker) => Array.from({ length: CALLS }, () => attacker));
  attack = Promise.all(calls.map(repeat));
  const refusals = () => attackers.map((attacker) => attacker.refusals);
  await expect.poll(refusals, { timeout: 60_000 }).not.toContain(0);
}

afterEach(async () => {
  leave.abort();
  await attack;
});

describe('a worker on which many accounts have as many calls as they can', () => {
  test('creates and changes sandboxes of a neighbour while guests do not send their logs', async () => {
    worker.lies.set('logs', () => ({ body: new Readable({ read: () => undefined }) }));
    await attackWith('GET', 'logs');
    const { key } = neighbour;
    // Its last heartbeat may be old by now.
    expect((await worker.register(harness.plane.url)).status).toBe(200);
    const vmId = await harness.create(key);
    for (const change of ['pause', 'resume', 'cancel']) {
      const answer = await harness.call('POST', `/v1/sandboxes/${vmId}/${change}`, { key });
      expect(answer.status, change).toBe(200);
    }
    worker.lies.delete('logs');
  }, 120_000);

  test('runs the commands of a neighbour, and deletes the sandboxes of all', async () => {
    await attackWith('POST', 'exec', { command: 'hang' });
    const json = { command: 'true' };
    const path = `/v1/sandboxes/${neighbour.vmId}/exec`;
    const exec = await harness.call('POST', path, { key: neighbour.key, json });
    expect(exec).toMatchObject({ status: 200, body: { exit_code: 0 } });
    for (const { key, vmId } of [neighbour, ...attackers]) {
      const answer = await harness.call('DELETE', `/v1/sandboxes/${vmId}`, { key });
      expect(answer).toMatchObject({ status: 200, body: { state: 'destroyed' } });
    }
  }, 120_000);
});
