import { decodeProtectedHeader, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Harness } from '../../test/harness.ts';
import type { ControlPlane } from '../index.ts';

let harness: Harness;
let planes: ControlPlane[] = [];

beforeAll(async () => {
  harness = await Harness.start();
});
beforeEach(async () => {
  await harness.sql.query('truncate signing_keys');
  await restart(1);
});
afterAll(async () => {
  await Promise.all(planes.slice(1).map((plane) => plane.close()));
  await harness?.[Symbol.asyncDispose]();
});

/** Replaces the control planes by `count` that have not read the keys yet. */
async function restart(count: number): Promise<void> {
  await Promise.all(planes.splice(1).map((plane) => plane.close()));
  await harness.restart();
  const others = Array.from({ length: count - 1 }, () => harness.startAnother());
  planes = [harness.plane, ...(await Promise.all(others))];
}

const age = (interval: string) =>
  harness.sql.query(`update signing_keys set created_at = created_at - interval '${interval}'`);
const keys = async () =>
  (await harness.sql.query<{ kid: string }>('select kid from signing_keys')).rows;
const statusOf = async (token: string, plane: ControlPlane) =>
  (await harness.call('GET', '/v1/audit', { key: token, plane })).status;
const tokenOf = async (plane: ControlPlane) => (await harness.signUp(undefined, plane)).token;
const kidOf = (token: string) => decodeProtectedHeader(token).kid;

/** A token whose key no control plane knows. */
async function strangersToken(): Promise<string> {
  const { privateKey } = await generateKeyPair('EdDSA');
  const kid = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url');
  return new SignJWT({}).setProtectedHeader({ alg: 'EdDSA', kid }).sign(privateKey);
}

test.each([
  [
    'one after the other',
    async (sign: (plane: ControlPlane) => Promise<string>) => {
      const tokens: string[] = [];
      for (const plane of planes) tokens.push(await sign(plane));
      return tokens;
    },
  ],
  [
    'at the same time',
    (sign: (plane: ControlPlane) => Promise<string>) => Promise.all(planes.map(sign)),
  ],
])(
  'past day 30, three control planes that sign %s add one key and accept the tokens of all',
  async (_order, inOrder) => {
    const before = await tokenOf(harness.plane);
    await age('30 days 1 minute');
    await restart(3);
    // Each of them has read the old key before one of them replaces it.
    for (const plane of planes) expect(await statusOf(before, plane)).toBe(200);
    const tokens = await inOrder(tokenOf);
    const statuses = await Promise.all(
      [before, ...tokens].flatMap((token) => planes.map((plane) => statusOf(token, plane))),
    );
    expect(statuses).toEqual(Array(12).fill(200));
    expect(await keys()).toHaveLength(2);
    expect(new Set(tokens.map(kidOf)).size).toBe(1);
  },
);

test('before day 30, no control plane adds a key', async () => {
  const before = await tokenOf(harness.plane);
  await age('29 days 23 hours');
  await restart(3);
  const tokens = await Promise.all(planes.map(tokenOf));
  expect(new Set([before, ...tokens].map(kidOf)).size).toBe(1);
  expect(await keys()).toHaveLength(1);
});

test('a token is accepted as soon as its key exists, also right after tokens with unknown keys', async () => {
  const before = await tokenOf(harness.plane);
  await age('30 days 1 minute');
  await restart(3);
  const [first = harness.plane, second = harness.plane] = planes;
  expect(await statusOf(before, second)).toBe(200);
  expect(await statusOf(await strangersToken(), second)).toBe(401);
  const token = await tokenOf(first);
  expect(kidOf(token)).not.toBe(kidOf(before));
  expect(await statusOf(token, second)).toBe(200);
});

test('a key is accepted while a token that it signed can be alive, then removed', async () => {
  const token = await tokenOf(harness.plane);
  await age('30 days 12 hours');
  await restart(1);
  expect(await statusOf(token, harness.plane)).toBe(200);
  await age('12 hours');
  await restart(1);
  expect(await statusOf(token, harness.plane)).toBe(401);
  await expect.poll(keys).toEqual([]);
});
