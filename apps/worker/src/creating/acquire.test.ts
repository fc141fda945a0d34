import { describe, expect, it } from 'vitest';
import { hostnameOf } from './acquire.ts';

describe('hostnameOf', () => {
  it.each([
    ['vm_019aa1b2c3d47e8f9a0b1c2d3e4f5a6b', 'vm-019aa1b2c3d47e8f9a0b1c2d3e4f5a6b'],
    ['_A__b_', 'a-b'],
    ['x'.repeat(100), 'x'.repeat(63)],
  ])('turns %j into a host name', (id, name) => {
    expect(hostnameOf(id)).toBe(name);
  });
});
