import { LIMITS } from '@svc/contract';
import type { SandboxRecord } from '@svc/sdk';
import { until } from '@svc/service-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { shared } from '../../test/shared-service.ts';
import type { Account } from '../../test/sign-up.ts';
import { TestSandbox } from '../../test/test-sandbox.ts';

/** At most a reaper's interval and its pass itself late, with room for a loaded machine. */
const LATE_SECONDS = LIMITS.reaperIntervalMs / 1000 + 30;

let account: Account;
let idle: TestSandbox;
let pausedOne: TestSandbox;

beforeAll(async () => {
  account = await shared.signUp();
  [idle, pausedOne] = await Promise.all([
    TestSandbox.create(account, { idle_timeout_seconds: 3 }),
    TestSandbox.create(account, { idle_timeout_seconds: 10, max_lifetime_seconds: 40 }),
  ]);
  await account.client.sandboxes.pause(pausedOne.id);
});
afterAll(() => account.client.close());

const ended = (sandbox: TestSandbox): Promise<SandboxRecord> =>
  until(
    'it has ended',
    async () => {
      const record = await account.client.sandboxes.get(sandbox.id);
      return record.state === 'destroyed' && record;
    },
    { deadlineMs: 150_000, intervalMs: 500 },
  );
const secondsBetween = (from: string | undefined, to: string | undefined) =>
  (Date.parse(to ?? '') - Date.parse(from ?? '')) / 1000;

test('a used sandbox outlives its idle timeout and ends at its maximum lifetime', async () => {
  const lifetimes = { idle_timeout_seconds: 10, max_lifetime_seconds: 30 };
  const used = await TestSandbox.create(account, lifetimes);
  const outcome = used.exec('sleep 600').catch((error: { code: string }) => error);
  const record = await ended(used);
  expect(record.end_reason).toBe('max_lifetime');
  const lived = secondsBetween(record.created_at, record.ended_at);
  expect(lived).toBeGreaterThanOrEqual(30);
  expect(lived).toBeLessThan(30 + LATE_SECONDS);
  expect(await outcome).toMatchObject({ code: 'sandbox_not_running' });
});

test('an idle sandbox ends, and not early', async () => {
  const record = await ended(idle);
  expect(record.end_reason).toBe('idle_timeout');
  const lived = secondsBetween(record.running_at, record.ended_at);
  expect(lived).toBeGreaterThanOrEqual(3);
  expect(lived).toBeLessThan(3 + LATE_SECONDS);
  await expect(idle.exec('true')).rejects.toMatchObject({ code: 'sandbox_not_running' });
});

test('a paused sandbox keeps its place until its maximum lifetime', async () => {
  expect(await ended(pausedOne)).toMatchObject({ end_reason: 'max_lifetime' });
});
