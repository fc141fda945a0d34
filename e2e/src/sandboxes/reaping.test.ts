import { LIMITS } from '@svc/contract';
import type { SandboxRecord } from '@svc/sdk';
import { until } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

/** A sandbox may end late by one interval of the reaper and the duration of its pass, which is long on a loaded machine. */
const LATE_SECONDS = LIMITS.reaperIntervalMs / 1000 + 30;

/** The reaper passes at least once between the two times, and would end an idle sandbox then. */
const LIFETIMES = { idle_timeout_seconds: 6, max_lifetime_seconds: 20 };

let account: Account;
let idle: TestSandbox;
let paused: TestSandbox;
let used: TestSandbox;
let command: Promise<unknown>;

beforeAll(async () => {
  account = await shared.signUp();
  // Side by side, because all of them just wait for their time.
  await Promise.all([
    (async () => {
      idle = await TestSandbox.create(account, { idle_timeout_seconds: 3 });
    })(),
    (async () => {
      paused = await TestSandbox.create(account, LIFETIMES);
      await account.client.sandboxes.pause(paused.id);
    })(),
    (async () => {
      used = await TestSandbox.create(account, LIFETIMES);
      command = used.exec('sleep 600').catch((error: { code: string }) => error);
    })(),
  ]);
});
afterAll(() => account.client.close());

const ended = (sandbox: TestSandbox): Promise<SandboxRecord> =>
  until(
    'the sandbox has ended',
    async () => {
      const record = await account.client.sandboxes.get(sandbox.id);
      return record.state === 'destroyed' && record;
    },
    { deadlineMs: 150_000 },
  );
const secondsBetween = (from: string | undefined, to: string | undefined) =>
  (Date.parse(to ?? '') - Date.parse(from ?? '')) / 1000;

test('a used sandbox outlives its idle timeout and ends at its maximum lifetime', async () => {
  const record = await ended(used);
  expect(record.end_reason).toBe('max_lifetime');
  const lived = secondsBetween(record.created_at, record.ended_at);
  expect(lived).toBeGreaterThanOrEqual(LIFETIMES.max_lifetime_seconds);
  expect(lived).toBeLessThan(LIFETIMES.max_lifetime_seconds + LATE_SECONDS);
  expect(await command).toMatchObject({ code: 'sandbox_not_running' });
});

test('an idle sandbox ends at its idle timeout, not earlier', async () => {
  const record = await ended(idle);
  expect(record.end_reason).toBe('idle_timeout');
  const lived = secondsBetween(record.running_at, record.ended_at);
  expect(lived).toBeGreaterThanOrEqual(3);
  expect(lived).toBeLessThan(3 + LATE_SECONDS);
  await expect(idle.exec('true')).rejects.toMatchObject({ code: 'sandbox_not_running' });
});

test('a paused sandbox outlives its idle timeout and ends at its maximum lifetime', async () => {
  expect(await ended(paused)).toMatchObject({ end_reason: 'max_lifetime' });
});
