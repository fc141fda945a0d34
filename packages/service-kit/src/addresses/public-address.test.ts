import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  insideEdges,
  insideIpv6Edges,
  ipv4Number,
  ipv6Tail,
  outsideEdges,
  outsideGlobalIpv6,
  outsideIpv6Edges,
} from '../../test/range-edges.ts';
import { isPublicAddress } from './public-address.ts';

describe('IPv4', () => {
  test.each(insideEdges())('rejects %s at the edge of a special range', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each(outsideEdges())('accepts %s next to a special range', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test('agrees with the ranges for any address', () => {
    const edges = insideEdges().map(ipv4Number);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffff_ffff }), (value) => {
        const address = [24, 16, 8, 0].map((shift) => (value >>> shift) & 0xff).join('.');
        const special = edges.some(
          (first, index) => index % 2 === 0 && value >= first && value <= (edges[index + 1] ?? 0n),
        );
        expect(isPublicAddress(address)).toBe(!special);
      }),
      { numRuns: 500 },
    );
  });
});

describe('IPv4 addresses in IPv6 addresses', () => {
  test.each(insideEdges())('rejects every form that embeds %s', (address) => {
    for (const form of [...mapped(address), ...otherForms(address)]) {
      expect(isPublicAddress(form), form).toBe(false);
    }
  });

  test.each([...outsideEdges(), '8.8.8.8'])('accepts only the mapped form of %s', (address) => {
    for (const form of mapped(address)) expect(isPublicAddress(form), form).toBe(true);
    for (const form of otherForms(address)) expect(isPublicAddress(form), form).toBe(false);
  });

  test('judges a mapped address like the IPv4 address', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    fc.assert(
      fc.property(fc.tuple(octet, octet, octet, octet), (octets) => {
        const address = octets.join('.');
        expect(isPublicAddress(`::ffff:${address}`)).toBe(isPublicAddress(address));
      }),
    );
  });
});

describe('IPv6', () => {
  test.each([...insideIpv6Edges(), ...outsideGlobalIpv6()])(
    'rejects %s at the edge of a range that is not public',
    (address) => {
      expect(isPublicAddress(address)).toBe(false);
    },
  );

  test.each(outsideIpv6Edges())('accepts %s at the edge of a public range', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ...['2000::', '2600::1', '2606:4700:4700::1111', '2001:200::', '2001:db7:ffff::1'],
    ...['2001:db9::', '2001:ffff:ffff::1', '2003::', '2620:4f:7fff::1', '2620:4f:8001::'],
    ...['3ffe:ffff::', '3fff:1000::', '3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('accepts %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    ...['::', '::1', '::8.8.8.8', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '100::1'],
    ...['1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001::', '2001::1', '2001:1ff:ffff::'],
    ...['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2002::', '2002:7f00:1::'],
    ...['2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2620:4f:8000::1', '3fff::', '3fff:fff::1'],
    ...['4000::', '5f00::1', 'fc00::', 'fd00:ec2::254', 'fdff::1', 'fe80::1', 'febf::1'],
    ...['fec0::1', 'ff00::', 'ff02::1', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'],
  ])('rejects %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

test.each([
  ...['', ' 8.8.8.8', '8.8.8.8 ', '8.8.8', '8.8.8.8.8', '0x08.8.8.8', '010.8.8.8', '134744072'],
  ...['127.1', '8.8.8.256', '[2600::1]', '2600::1%eth0', 'fe80::1%1', 'example.com', '8.8.8.8/32'],
])('rejects %j, which is not an address in its usual notation', (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

/** The IPv4-mapped forms of an address: dotted, hexadecimal, in full. */
function mapped(address: string): string[] {
  const tail = ipv6Tail(address);
  return [`::ffff:${address}`, `::ffff:${tail}`, `0:0:0:0:0:ffff:${tail}`, `::FFFF:${address}`];
}

/** IPv4-compatible, IPv4-translated, NAT64 (well-known and local prefix) and 6to4. */
function otherForms(address: string): string[] {
  const tail = ipv6Tail(address);
  return [
    ...[`::${address}`, `::${tail}`, `::ffff:0:${tail}`],
    ...[`64:ff9b::${address}`, `64:ff9b::${tail}`, `64:ff9b:1::${tail}`],
    ...[`2002:${tail}::`, `2002:${tail}::1`, `2002:${tail}:ffff:ffff:ffff:ffff:ffff`],
  ];
}
