import { expect, test } from 'vitest';
import * as addresses from './addresses.ts';

const { INSTANCE_COUNT, SLOT_COUNT } = addresses;

test('the blocks of all instances fill 198.18.0.0/15 without overlapping', () => {
  expect(addresses.instanceBlock(0)).toBe('198.18.0.0/20');
  expect(addresses.instanceBlock(1)).toBe('198.18.16.0/20');
  expect(addresses.instanceBlock(INSTANCE_COUNT - 1)).toBe('198.19.240.0/20');
  expect(addresses.slotAddresses(INSTANCE_COUNT - 1, SLOT_COUNT - 1)).toEqual({
    hostAddress: '198.19.255.254',
    slotAddress: '198.19.255.255',
  });
});

test('finds a slot by its own address only', () => {
  for (const slot of [1, 2, 1000, SLOT_COUNT - 1]) {
    const { hostAddress, slotAddress } = addresses.slotAddresses(3, slot);
    expect(addresses.slotOfAddress(3, slotAddress)).toBe(slot);
    expect(addresses.slotOfAddress(3, hostAddress)).toBeUndefined();
    expect(addresses.slotOfAddress(2, slotAddress)).toBeUndefined();
    expect(addresses.slotOfAddress(4, slotAddress)).toBeUndefined();
  }
  for (const address of [addresses.serviceAddress(3), '127.0.0.1', '0.0.0.0', '255.255.255.255']) {
    expect(addresses.slotOfAddress(3, address)).toBeUndefined();
  }
});

test('every slot has a user of its own, outside the ranges in common use', () => {
  const last = addresses.slotUid(0, SLOT_COUNT - 1);
  expect(addresses.slotUid(1, 0)).toBe(last + 1);
  expect(addresses.slotUid(0, 0)).toBeGreaterThan(1_879_048_191);
  expect(addresses.slotUid(INSTANCE_COUNT - 1, SLOT_COUNT - 1)).toBeLessThan(2 ** 31);
});
