import { expect, test } from 'vitest';
import { Secret } from '../secret.ts';
import { mintEnrolmentToken, verifyEnrolmentToken } from './enrolment-tokens.ts';
import { createTokenMinter } from './internal-tokens.ts';
import {
  deriveControlPlaneKey,
  formatKeyPair,
  generateKeyPair,
  keyIdOf,
  parseKeyPair,
} from './key-pair.ts';
import { findAmong } from './signed-tokens.ts';

const enrolment = { kind: 'worker', uses: 1 } as const;
const invalid = expect.objectContaining({ code: 'enrolment_token_invalid' });

test('an enrolment token says what it allows, and has an id of its own', async () => {
  const key = await generateKeyPair();
  const [one, two] = await Promise.all(
    [
      { kind: 'worker', uses: 3 } as const,
      { kind: 'runtime', componentId: 'rth_1', uses: 1 } as const,
    ].map(async (made) => {
      const token = await mintEnrolmentToken(key, made, 60);
      return verifyEnrolmentToken(token, findAmong(key));
    }),
  );
  expect(one).toMatchObject({ kind: 'worker', componentId: undefined, uses: 3 });
  expect(two).toMatchObject({ kind: 'runtime', componentId: 'rth_1', uses: 1 });
  expect(one?.tokenId).not.toBe(two?.tokenId);
});

test('an enrolment token is refused when it is expired, foreign, of another kind or malformed', async () => {
  const key = await generateKeyPair();
  const refusals = [
    mintEnrolmentToken(key, enrolment, -100),
    mintEnrolmentToken(await generateKeyPair(), enrolment, 60),
    mintEnrolmentToken(key, { ...enrolment, uses: 0 }, 60),
    createTokenMinter(key, 'svc-operator')('svc-control-plane'),
    'a.b.c',
    '',
  ];
  for (const token of refusals) {
    await expect(verifyEnrolmentToken(await token, findAmong(key))).rejects.toEqual(invalid);
  }
});

test('a key pair survives its file, and control planes with one secret share one', async () => {
  const key = await generateKeyPair();
  const read = await parseKeyPair(formatKeyPair(key));
  expect(read).toMatchObject({ id: key.id, publicKey: key.publicKey });
  expect(await keyIdOf(key.publicKey)).toBe(key.id);
  const [one, two, other] = await Promise.all(
    ['s', 's', 't'].map((text) => deriveControlPlaneKey(new Secret(text.repeat(40)))),
  );
  expect(one?.id).toBe(two?.id);
  expect(one?.id).not.toBe(other?.id);
});
