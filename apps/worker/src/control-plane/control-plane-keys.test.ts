import type { KeySet } from '@svc/contract';
import { generateKeyPair, type KeyPair } from '@svc/service-kit';
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ControlPlaneKeys } from './control-plane-keys.ts';
import type { ControlPlaneTransport } from './control-plane-transport.ts';

let first: KeyPair;
let second: KeyPair;
let published: KeyPair[];
let asked: number;
let isAway: boolean;
let faults: unknown[];
let keys: ControlPlaneKeys;

beforeAll(async () => {
  [first, second] = await Promise.all([generateKeyPair(), generateKeyPair()]);
});
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  [published, asked, isAway, faults] = [[first], 0, false, []];
  const json = async () => {
    asked += 1;
    if (isAway) throw new Error('away');
    const set: KeySet = { keys: published.map(({ id, publicKey }) => ({ ...publicKey, kid: id })) };
    return set;
  };
  const transport = { json } as unknown as Pick<ControlPlaneTransport, 'json'>;
  keys = new ControlPlaneKeys(transport, (error) => faults.push(error));
});
afterEach(() => {
  vi.useRealTimers();
});

const find = ({ id }: KeyPair) => keys.find({ issuer: 'svc-control-plane', keyId: id });

test('a key is found, and read once for many tokens', async () => {
  const found = await Promise.all([find(first), find(first), find(first)]);
  for (const key of found) expect(key).toEqual(first.publicKey);
  expect(asked).toBe(1);
});

test('a new key is found as soon as it signs, but unknown ones are not asked for without end', async () => {
  expect(await find(first)).toBeDefined();
  published = [first, second];
  vi.advanceTimersByTime(1_000);
  expect(await find(second)).toEqual(second.publicKey);
  const unknown = await generateKeyPair();
  for (let n = 0; n < 9; n += 1) expect(await find(unknown)).toBeUndefined();
  expect(asked).toBe(2);
});

test('a key that is published no more is trusted for five minutes at most', async () => {
  keys.refresh();
  await expect.poll(() => find(first)).toBeDefined();
  published = [second];
  vi.advanceTimersByTime(300_001);
  keys.refresh();
  await expect.poll(() => find(second)).toBeDefined();
  expect(await find(first)).toBeUndefined();
});

test('known keys stay known while no control plane answers', async () => {
  expect(await find(first)).toBeDefined();
  isAway = true;
  vi.advanceTimersByTime(300_001);
  keys.refresh();
  expect(await find(first)).toBeDefined();
  expect(await find(second)).toBeUndefined();
  expect(faults.length).toBeGreaterThan(0);
});
