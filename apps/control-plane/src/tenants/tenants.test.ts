import { createLogger } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import { AuditTrail } from '../audit/audit-trail.ts';
import { AccountTokens } from '../auth/account-tokens.ts';
import { SigningKeys } from '../auth/signing-keys.ts';
import { ApiKeys } from '../keys/api-keys.ts';
import type { Message } from './mail.ts';
import { OneTimeCodes } from './one-time-codes.ts';
import { Tenants } from './tenants.ts';

const IP = '2001:db8:1:2::1';
const NETWORK = '2001:db8:1:2::/64';

let ledger: TestLedger;
let tokens: AccountTokens;
let tenants: Tenants;
let mails: Message[] = [];
let accounts = 0;

beforeAll(async () => {
  ledger = await startTestLedger();
  const { store } = ledger;
  const logger = createLogger({ level: 'silent' });
  const audit = new AuditTrail(store.audit, logger);
  tokens = new AccountTokens(new SigningKeys(store.signingKeys, [Buffer.alloc(32, 1)]));
  tenants = new Tenants({
    tenants: store.tenants,
    grantCents: 500,
    codes: new OneTimeCodes({
      otp: store.otp,
      mailer: { send: async (message) => void mails.push(message), close: () => undefined },
      logger,
      hashKeys: [Buffer.alloc(32, 2)],
      limits: { otpPerEmailPerHour: 9, otpPerIpPerHour: 9, otpWrongPerIpPerHour: 2 },
    }),
    tokens,
    keys: new ApiKeys(store, audit, 1),
    audit,
  });
});
afterAll(() => ledger?.[Symbol.asyncDispose]());
beforeEach(async () => {
  mails = [];
  accounts += 1;
  await ledger.sql.query('truncate otp_requests, audit_records');
});

const address = () => `user${accounts}@example.com`;
async function codeFor(email: string): Promise<string> {
  await tenants.requestCode(email, IP);
  return mails.at(-1)?.subject.slice(0, 6) ?? 'none';
}
const audited = async () =>
  (await ledger.sql.query('select tenant_id, event, details from audit_records order by id')).rows;

describe('the first sign-in', () => {
  test('opens an account with its credit, a key and a token', async () => {
    const made = await tenants.verify(address(), await codeFor(address()), IP);
    expect(made).toEqual({
      tenant_id: expect.stringMatching(/^usr_[0-9a-f]{32}$/),
      key_id: expect.stringMatching(/^key_/),
      prefix: made.api_key.slice(0, 12),
      api_key: expect.stringMatching(/^svc_[0-9a-f]{64}$/),
      plan_tier: 'free',
      created_at: expect.any(String),
      token: expect.any(String),
    });
    const { tenant_id: id } = made;
    expect(await tokens.verify(made.token)).toBe(id);
    expect(await ledger.store.apiKeys.findOwner(made.api_key)).toMatchObject({ tenantId: id });
    const { rows } = await ledger.sql.query(
      'select kind, amount_cents::int from ledger_entries where tenant_id = $1',
      [id],
    );
    expect(rows).toEqual([{ kind: 'grant', amount_cents: 500 }]);
    expect(await audited()).toEqual([
      { tenant_id: id, event: 'login_succeeded', details: {} },
      {
        tenant_id: id,
        event: 'api_key_created',
        details: { key_id: made.key_id, by: 'account' },
      },
    ]);
    expect(await tenants.describe(id)).toEqual({
      tenant_id: id,
      email: address(),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      plan: 'free',
    });
  });
});

test('a later sign-in finds the account of the address, in any spelling, and uses the code up', async () => {
  const first = await tenants.verify(address(), await codeFor(address()), IP);
  const code = await codeFor(` ${address().toUpperCase()} `);
  const again = await tenants.signIn(address().toUpperCase(), code, IP);
  expect(again).toEqual({
    token: expect.any(String),
    user_id: first.tenant_id,
    email: address(),
  });
  expect(await tokens.verify(again.token)).toBe(first.tenant_id);
  const next = await codeFor(address());
  // The account has as many keys as it may have.
  await expect(tenants.verify(address(), next, IP)).rejects.toMatchObject({
    code: 'api_key_limit_reached',
  });
  await expect(tenants.signIn(address(), next, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
});

describe('a refused sign-in', () => {
  test('is recorded for the account, those of one network once, until the network may not try', async () => {
    const { tenant_id: id } = await tenants.verify(address(), await codeFor(address()), IP);
    await ledger.sql.query('truncate audit_records');
    const refused = () => tenants.signIn(address(), '000000', IP);
    await expect(refused()).rejects.toMatchObject({ code: 'otp_invalid' });
    await expect(refused()).rejects.toMatchObject({ code: 'otp_invalid' });
    await expect(refused()).rejects.toMatchObject({ code: 'ip_rate_limited' });
    expect(await audited()).toEqual([
      {
        tenant_id: id,
        event: 'login_failed',
        details: { email: address(), network: NETWORK, count: 2 },
      },
    ]);
  });

  test('of an address without an account creates none, and is recorded for nobody', async () => {
    await expect(tenants.signIn(address(), '000000', IP)).rejects.toMatchObject({
      code: 'otp_invalid',
    });
    expect(await ledger.store.tenants.findByEmail(address())).toBeUndefined();
    expect(await audited()).toEqual([
      {
        tenant_id: null,
        event: 'login_failed',
        details: { email: address(), network: NETWORK, count: 1 },
      },
    ]);
  });

  test('with a text that is no address is like a wrong code', async () => {
    await expect(tenants.signIn('nobody', '000000', IP)).rejects.toMatchObject({
      code: 'otp_invalid',
    });
    expect(await audited()).toEqual([]);
  });
});

test('a code for a text that is no address is refused', async () => {
  await expect(tenants.requestCode('nobody', IP)).rejects.toMatchObject({ code: 'email_invalid' });
  expect(mails).toEqual([]);
});

test('an account that is gone is refused', async () => {
  await expect(tenants.describe('usr_gone')).rejects.toMatchObject({ code: 'unauthorized' });
});
