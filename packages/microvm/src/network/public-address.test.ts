import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPublicAddress } from './public-address.ts';
import { insideEdges, outsideEdges } from './testing/range-edges.ts';

describe('IPv4', () => {
  test.each(insideEdges())('%s, at the edge of a special range, is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(outsideEdges())('%s, next to a special range, is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test('is judged the same when mapped into IPv6', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const address = octets.join('.');
        expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublicAddress(address));
      }),
    );
  });

  test('agrees with the ranges for any address', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (value) => {
        const address = [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
        const edges = [...insideEdges()].map(toNumber);
        const special = edges.some(
          (first, index) => index % 2 === 0 && value >= first && value <= (edges[index + 1] ?? 0),
        );
        expect(isPublicAddress(address)).toBe(!special);
      }),
      { numRuns: 500 },
    );
  });
});

describe('IPv6', () => {
  test.each([
    ...['2000::', '2600::1', '2606:4700:4700::1111', '2001:200::', '2001:db7:ffff::1'],
    ...['2001:db9::', '2001:ffff:ffff::1', '2003::', '2620:4f:7fff::1', '2620:4f:8001::'],
    ...['3ffe:ffff::', '3fff:1000::', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s is public', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ...['::', '::1', '::8.8.8.8', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '100::1'],
    ...['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001::', '2001::1', '2001:1ff:ffff::'],
    ...['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2002::', '2002:7f00:1::'],
    ...['2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2620:4f:8000::1', '3fff::', '3fff:fff::1'],
    ...['4000::', '5f00::1', 'fc00::', 'fd00:ec2::254', 'fdff::1', 'fe80::1', 'febf::1'],
    ...['fec0::1', 'ff00::', 'ff02::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'],
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

test.each([
  ...['', ' 8.8.8.8', '8.8.8.8 ', '8.8.8', '8.8.8.8.8', '0x08.8.8.8', '010.8.8.8', '134744072'],
  ...['127.1', '8.8.8.256', '[2600::1]', '2600::1%eth0', 'fe80::1%1', 'example.com', '8.8.8.8/32'],
])('%j is no address in its usual notation, so it is not public', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

function toNumber(address: string): number {
  return address.split('.').reduce((value, octet) => value * 256 + Number(octet), 0);
}
