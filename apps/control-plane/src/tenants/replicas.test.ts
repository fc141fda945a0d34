import { afterAll, beforeAll, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import type { ControlPlane } from '../index.ts';

let harness: Harness;
let second: ControlPlane;

beforeAll(async () => {
  harness = await Harness.start({ SVC_LIMIT_OTP_PER_IP_PER_HOUR: '8' });
  second = await harness.startAnother();
});
afterAll(async () => {
  await second?.close();
  await harness?.[Symbol.asyncDispose]();
});

const planes = () => [harness.plane, second] as const;
const ask = (email: string, plane: ControlPlane) =>
  harness.call('POST', '/v1/auth/login', { json: { email }, plane });
const verify = (email: string, code: string, plane: ControlPlane) =>
  harness.call('POST', '/v1/auth/verify-otp', { json: { email, code }, plane });
const forgetNetwork = () => harness.sql.query("delete from otp_requests where kind = 'ip'");
const countOf = (answers: readonly { status: number }[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

test('an address gets three codes an hour from both together, across a restart', async () => {
  await forgetNetwork();
  const email = 'a@example.com';
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_, index) => ask(email, planes()[index % 2 === 0 ? 0 : 1])),
  );
  expect(countOf(answers, 200)).toBe(3);
  expect(countOf(answers, 429)).toBe(3);
  await harness.restart();
  const refused = await ask(email, harness.plane);
  expect(refused).toMatchObject({ status: 429, body: { code: 'otp_rate_limited' } });
  expect(refused.headers.get('ratelimit-policy')).toBe('"otp-email";q=3;w=3600');
});

test('the hourly limit of a network covers both, across a restart', async () => {
  await forgetNetwork();
  const answers = await Promise.all(
    Array.from({ length: 14 }, (_, index) =>
      ask(`n${index}@example.com`, planes()[index % 2 === 0 ? 0 : 1]),
    ),
  );
  expect(countOf(answers, 200)).toBe(8);
  await harness.restart();
  expect((await ask('n99@example.com', harness.plane)).body.code).toBe('ip_rate_limited');
});

test('after 200 concurrent wrong guesses on both, the right code is 401', async () => {
  await forgetNetwork();
  const email = 'guess@example.com';
  await ask(email, harness.plane);
  const code = await harness.lastCode(email);
  const wrong = Array.from({ length: 200 }, (_, index) =>
    String((Number(code) + 1 + index) % 1_000_000).padStart(6, '0'),
  );
  const answers = await Promise.all(
    wrong.map((guess, index) => verify(email, guess, planes()[index % 2 === 0 ? 0 : 1])),
  );
  // On a busy machine, some are refused for lack of time.
  expect(countOf(answers, 401) + countOf(answers, 503)).toBe(200);
  const { rows } = await harness.sql.query('select attempts from otp_codes where email = $1', [
    email,
  ]);
  expect(rows).toEqual([{ attempts: 5 }]);
  expect((await verify(email, code, second)).status).toBe(401);
  await harness.restart();
  expect((await verify(email, code, harness.plane)).status).toBe(401);
});

test('after four wrong guesses on one, the other accepts the right code once', async () => {
  await forgetNetwork();
  const email = 'ok@example.com';
  await ask(email, second);
  const code = await harness.lastCode(email);
  const wrong = code === '000000' ? '000001' : '000000';
  for (let tries = 0; tries < 4; tries += 1) await verify(email, wrong, harness.plane);
  const answers = await Promise.all(planes().map((plane) => verify(email, code, plane)));
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, 401]);
});

test('a token of one is valid on the other', async () => {
  await forgetNetwork();
  const email = 'token@example.com';
  await ask(email, second);
  const { body } = await verify(email, await harness.lastCode(email), second);
  for (const plane of planes()) {
    const me = await harness.call('GET', '/v1/tenants/me', { key: String(body.token), plane });
    expect(me.body).toMatchObject({ email });
  }
});

test('wrong codes of a network are counted by both before a code is touched, and are one audit record', async () => {
  await using limited = await Harness.start({ SVC_LIMIT_OTP_WRONG_PER_IP_PER_HOUR: '7' });
  const other = await limited.startAnother();
  try {
    const victim = await limited.signUp('victim@example.com');
    const email = 'victim@example.com';
    await limited.call('POST', '/v1/auth/login', { json: { email } });
    const code = await limited.lastCode(email);
    const guess = (json: object, plane: ControlPlane) =>
      limited.call('POST', '/v1/auth/verify-otp', { json, plane });
    const wrong = code === '000000' ? '000001' : '000000';
    const planesInTurn = (index: number) => (index % 2 === 0 ? limited.plane : other);
    // The code of the victim allows five wrong tries.
    const first = [0, 1, 2, 3].map((index) => guess({ email, code: wrong }, planesInTurn(index)));
    const answers = await Promise.all(first);
    const others = Array.from({ length: 8 }, (_, index) =>
      guess({ email: `other${index}@example.com`, code: wrong }, planesInTurn(index)),
    );
    answers.push(...(await Promise.all(others)));
    expect(countOf(answers, 401)).toBe(7);
    const refused = answers.filter((answer) => answer.status === 429);
    expect(refused).toHaveLength(5);
    expect(refused[0]?.body).toMatchObject({ code: 'ip_rate_limited' });
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(3000);
    // The right code is refused too, from this network, and stays valid.
    expect((await guess({ email, code }, other)).status).toBe(429);
    await limited.sql.query("delete from otp_requests where kind = 'wrong_code'");
    expect((await guess({ email, code }, other)).status).toBe(200);
    const { rows } = await limited.sql.query(
      "select tenant_id, sum((details->>'count')::int)::int as failures, count(*)::int from audit_records where event = 'login_failed' group by tenant_id order by tenant_id nulls last",
    );
    expect(rows.every(({ count }) => count === 1)).toBe(true);
    expect(rows.reduce((sum, { failures }) => sum + failures, 0)).toBe(7);
    expect(rows[0]?.tenant_id).toBe(victim.tenantId);
    // A right code is not counted.
    const hits = await limited.sql.query(
      "select coalesce(sum(cardinality(hits)), 0)::int as hits from otp_requests where kind = 'wrong_code'",
    );
    expect(hits.rows).toEqual([{ hits: 0 }]);
  } finally {
    await other.close();
  }
});
