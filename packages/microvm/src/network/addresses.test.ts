import { expect, test } from 'vitest';
import * as addresses from './addresses.ts';

const { INSTANCE_COUNT, SLOT_COUNT } = addresses;

test('the instances’ blocks fill 198.18.0.0/15 without overlapping', () => {
  expect(addresses.instanceBlock(0)).toBe('198.18.0.0/20');
  expect(addresses.instanceBlock(1)).toBe('198.18.16.0/20');
  expect(addresses.instanceBlock(INSTANCE_COUNT - 1)).toBe('198.19.240.0/20');
  expect(addresses.slotAddresses(INSTANCE_COUNT - 1, SLOT_COUNT - 1)).toEqual({
    host: '198.19.255.254',
    outer: '198.19.255.255',
  });
});

test('a guest is recognised by its slot’s outer address alone', () => {
  for (const slot of [1, 2, 1000, SLOT_COUNT - 1]) {
    const { host, outer } = addresses.slotAddresses(3, slot);
    expect(addresses.slotOfAddress(3, outer)).toBe(slot);
    expect(addresses.slotOfAddress(3, host)).toBeUndefined();
    expect(addresses.slotOfAddress(2, outer)).toBeUndefined();
    expect(addresses.slotOfAddress(4, outer)).toBeUndefined();
  }
  for (const address of [addresses.serviceAddress(3), '127.0.0.1', '0.0.0.0', '255.255.255.255']) {
    expect(addresses.slotOfAddress(3, address)).toBeUndefined();
  }
});

test('no two slots of a machine share a user, and none is a usual user', () => {
  const last = addresses.slotUid(0, SLOT_COUNT - 1);
  expect(addresses.slotUid(1, 0)).toBe(last + 1);
  expect(addresses.slotUid(0, 0)).toBeGreaterThan(1_879_048_191);
  expect(addresses.slotUid(INSTANCE_COUNT - 1, SLOT_COUNT - 1)).toBeLessThan(2 ** 31);
});
