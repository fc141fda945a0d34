import { ServiceError } from '@svc/contract';
import { createLogger } from '@svc/service-kit';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startTestLedger, type TestLedger } from '../../test/test-ledger.ts';
import type { Message } from './mail.ts';
import { networkOf, OneTimeCodes } from './one-time-codes.ts';

/** What the next codes are made from, and below which number; the real source when there is none. */
const dice = vi.hoisted(() => ({ next: [] as number[], below: [] as number[] }));

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return {
    ...crypto,
    randomInt: (below: number) => {
      dice.below.push(below);
      return dice.next.shift() ?? crypto.randomInt(below);
    },
  };
});

const EMAIL = 'ada@example.com';
const IP = '192.0.2.7';
const HASH_KEY = Buffer.alloc(32, 1);

let ledger: TestLedger;
let codes: OneTimeCodes;
let mails: Message[];
/** How the next message is sent; at once when there is none. */
let mailing: (() => Promise<void>) | undefined;
let logged: string[];

function create(...hashKeys: readonly [Buffer, ...Buffer[]]): OneTimeCodes {
  return new OneTimeCodes({
    otp: ledger.store.otp,
    mailer: {
      send: async (message) => {
        await mailing?.();
        mails.push(message);
      },
      close: () => undefined,
    },
    logger: createLogger({
      level: 'info',
      pretty: false,
      destination: { write: (line) => void logged.push(line) },
    }),
    hashKeys,
    limits: { otpPerEmailPerHour: 3, otpPerIpPerHour: 5, otpWrongPerIpPerHour: 7 },
  });
}

beforeAll(async () => {
  ledger = await startTestLedger();
});
afterAll(() => ledger?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await ledger.sql.query('truncate otp_codes, otp_requests');
  [mails, logged, mailing] = [[], [], undefined];
  [dice.next, dice.below] = [[], []];
  codes = create(HASH_KEY);
});

const codeIn = (mail: Message | undefined) => /^(\d{6}) /.exec(mail?.subject ?? '')?.[1] ?? 'none';
/** Sends a code to this address and returns it. */
async function sent(email = EMAIL, ip = IP): Promise<string> {
  await codes.send(email, ip);
  return codeIn(mails.at(-1));
}
const wrongFor = (code: string) => (code === '000000' ? '000001' : '000000');
const hitsOf = async (kind: string) =>
  (
    await ledger.sql.query<{ subject: string; hits: number }>(
      'select subject, cardinality(hits) as hits from otp_requests where kind = $1 order by subject',
      [kind],
    )
  ).rows;

describe('a code', () => {
  test('has six digits, from all numbers that have no more', async () => {
    dice.next = [7, 999_999];
    expect(await sent()).toBe('000007');
    expect(await sent()).toBe('999999');
    expect(dice.below).toEqual([1_000_000, 1_000_000]);
  });

  test('goes to its address as text and as a page, and is good for one use', async () => {
    const code = await sent();
    expect(mails).toMatchObject([{ to: EMAIL, subject: `${code} is your sign-in code` }]);
    expect(mails[0]?.text).toContain(`Your sign-in code is ${code}. It is valid for 10 minutes`);
    expect(mails[0]?.text).toContain('If you did not ask for it');
    expect(mails[0]?.html).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(mails[0]?.html).toMatch(
      new RegExp(`<p style="font-size: 32px[^"]*">${code}</p>\\n<p>It is valid for 10 minutes`),
    );
    expect(mails[0]?.html).toContain('<body style="font-family: system-ui');
    expect(mails[0]?.html).toContain('If you did not ask for it');
    await codes.redeem(EMAIL, code, IP);
    await expect(codes.redeem(EMAIL, code, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
  });

  test('are redeemed with a key that another one replaces', async () => {
    const code = await sent();
    await create(Buffer.alloc(32, 2), HASH_KEY).redeem(EMAIL, code, IP);
    await expect(codes.redeem(EMAIL, code, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
  });

  test('is valid for ten minutes, and stored as a hash under the key of the service', async () => {
    const code = await sent();
    const { rows } = await ledger.sql.query(
      'select code_hash, extract(epoch from expires_at - created_at)::float8 as seconds from otp_codes',
    );
    expect(rows[0].seconds).toBeCloseTo(600, 0);
    expect(rows[0].code_hash).toHaveLength(32);
    expect(JSON.stringify(rows)).not.toContain(code);
    const elsewhere = create(Buffer.alloc(32, 2));
    await expect(elsewhere.redeem(EMAIL, code, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
    await ledger.sql.query("update otp_codes set expires_at = expires_at - interval '600 seconds'");
    await expect(codes.redeem(EMAIL, code, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
  });

  test('replaces the one before, and is worth nothing at another address', async () => {
    dice.next = [1, 2, 3];
    const before = await sent();
    const code = await sent();
    await sent('bob@example.com');
    await expect(codes.redeem(EMAIL, before, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
    await expect(codes.redeem('bob@example.com', code, IP)).rejects.toMatchObject({
      code: 'otp_invalid',
    });
    await codes.redeem(EMAIL, code, IP);
  });

  test('is worth nothing after five wrong tries', async () => {
    const [code, other] = [await sent(), await sent('bob@example.com')];
    for (let tries = 0; tries < 4; tries += 1) {
      await expect(codes.redeem(EMAIL, wrongFor(code), IP)).rejects.toThrow(ServiceError);
    }
    await codes.redeem(EMAIL, code, IP);
    for (let tries = 0; tries < 5; tries += 1) {
      const ip = `192.0.2.${tries}`;
      await expect(codes.redeem('bob@example.com', wrongFor(other), ip)).rejects.toMatchObject({
        code: 'otp_invalid',
      });
    }
    await expect(codes.redeem('bob@example.com', other, IP)).rejects.toMatchObject({
      code: 'otp_invalid',
    });
  });

  test('that cannot be sent is worth nothing, and the failure is in the log', async () => {
    const code = await sent();
    const fault = new Error('no such mailbox');
    mailing = () => Promise.reject(fault);
    await expect(codes.send(EMAIL, IP)).rejects.toMatchObject({
      code: 'email_send_failed',
      cause: fault,
    });
    expect(logged.join()).toContain('no such mailbox');
    expect((await ledger.sql.query('select from otp_codes')).rowCount).toBe(0);
    await expect(codes.redeem(EMAIL, code, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
  });
});

test.each(['', '12345', '1234567', '12345a'])('%j is no code', async (text) => {
  await sent();
  await expect(codes.redeem(EMAIL, text, IP)).rejects.toMatchObject({ code: 'otp_invalid' });
  await expect(codes.redeem('nobody@example.com', text, IP)).rejects.toMatchObject({
    code: 'otp_invalid',
  });
});

test('of many that redeem a code at once, one succeeds', async () => {
  const code = await sent();
  const tries = await Promise.allSettled(
    Array.from({ length: 5 }, () => codes.redeem(EMAIL, code, IP)),
  );
  expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('stays valid when the mail with an earlier one fails late', async () => {
  const failed = Promise.withResolvers<never>();
  const onItsWay = Promise.withResolvers<void>();
  mailing = () => {
    mailing = undefined;
    onItsWay.resolve();
    return failed.promise;
  };
  const early = codes.send(EMAIL, IP);
  await onItsWay.promise;
  const code = await sent();
  failed.reject(new Error('the mail server does not answer'));
  await expect(early).rejects.toMatchObject({ code: 'email_send_failed' });
  await codes.redeem(EMAIL, code, IP);
});

describe('limits', () => {
  const refusal = (code: string, name: string, most: number) => ({
    code,
    headers: {
      'ratelimit-policy': `"${name}";q=${most};w=3600`,
      ratelimit: expect.stringMatching(new RegExp(`^"${name}";r=0;t=3(600|5\\d\\d)$`)),
      'retry-after': expect.stringMatching(/^3(600|5\d\d)$/),
    },
  });

  test('an address gets three codes an hour, from anywhere', async () => {
    for (const ip of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) await codes.send(EMAIL, ip);
    await expect(codes.send(EMAIL, '192.0.2.4')).rejects.toMatchObject(
      refusal('otp_rate_limited', 'otp-email', 3),
    );
    expect(mails).toHaveLength(3);
    await codes.send('bob@example.com', '192.0.2.4');
  });

  test('a network asks for five codes an hour, and one more counts for no address', async () => {
    for (let count = 0; count < 5; count += 1) await codes.send(`u${count}@example.com`, IP);
    await expect(codes.send(EMAIL, IP)).rejects.toMatchObject(
      refusal('ip_rate_limited', 'otp-ip', 5),
    );
    expect(mails).toHaveLength(5);
    expect(await hitsOf('ip')).toEqual([{ subject: IP, hits: 5 }]);
    expect((await hitsOf('email')).map(({ subject }) => subject)).not.toContain(EMAIL);
  });

  test('a network tries seven wrong codes an hour; one more uses no try, and a right one counts for nothing', async () => {
    const code = await sent();
    await codes.redeem(EMAIL, code, IP);
    expect(await hitsOf('wrong_code')).toEqual([{ subject: IP, hits: 0 }]);
    const next = await sent();
    for (let count = 0; count < 7; count += 1) {
      await expect(codes.redeem(`u${count}@example.com`, '000000', IP)).rejects.toThrow();
    }
    await expect(codes.redeem(EMAIL, next, IP)).rejects.toMatchObject(
      refusal('ip_rate_limited', 'otp-wrong-code', 7),
    );
    expect((await ledger.sql.query('select attempts from otp_codes')).rows).toEqual([
      { attempts: 0 },
    ]);
    await codes.redeem(EMAIL, next, '192.0.2.8');
  });

  test('the addresses of an IPv6 customer are one network', async () => {
    await codes.send('a@example.com', '2001:db8:1:2::1');
    await codes.send('b@example.com', '2001:db8:1:2:ffff::1');
    expect(await hitsOf('ip')).toEqual([{ subject: '2001:db8:1:2::/64', hits: 2 }]);
  });
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:abcd:12:3:4:5:6', '2001:db8:abcd:12::/64'],
  ['2001:DB8::1', '2001:db8:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['not an address', 'not an address'],
])('the network of %s is %s', (ip, network) => {
  expect(networkOf(ip)).toBe(network);
});
