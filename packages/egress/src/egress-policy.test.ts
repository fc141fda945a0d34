import { isPublicAddress } from '@svc/service-kit/addresses';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EgressPolicy } from './egress-policy.ts';

describe('addresses', () => {
  test.each([
    ['0.0.0.0'],
    ['10.0.0.0'],
    ['10.255.255.255'],
    ['100.64.0.0'],
    ['100.127.255.255'],
    ['127.0.0.1'],
    ['169.254.169.254'],
    ['172.16.0.0'],
    ['172.31.255.255'],
    ['192.0.0.1'],
    ['192.0.2.1'],
    ['192.168.255.255'],
    ['198.18.0.1'],
    ['198.19.255.255'],
    ['198.51.100.1'],
    ['203.0.113.1'],
    ['224.0.0.1'],
    ['240.0.0.1'],
    ['255.255.255.255'],
    ['::'],
    ['::1'],
    ['::ffff:127.0.0.1'],
    ['::ffff:0:127.0.0.1'],
    ['::127.0.0.1'],
    ['64:ff9b::7f00:1'],
    ['64:ff9b:1::1'],
    ['100::1'],
    ['2001::1'],
    ['2001:db8::1'],
    ['2002:7f00:1::'],
    ['fc00::1'],
    ['fd00:ec2::254'],
    ['fe80::1'],
    ['fec0::1'],
    ['ff02::1'],
    ['not an address'],
  ])('rejects %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.each([
    ['9.255.255.255'],
    ['11.0.0.0'],
    ['100.63.255.255'],
    ['100.128.0.0'],
    ['172.15.255.255'],
    ['172.32.0.0'],
    ['198.17.255.255'],
    ['198.20.0.0'],
    ['8.8.8.8'],
    ['::ffff:8.8.8.8'],
    ['2606:4700:4700::1111'],
  ])('accepts %s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe('the policy', () => {
  const resolvingTo = (...addresses: string[]) => new EgressPolicy([], async () => addresses);

  test('requires every address of a name to be public', async () => {
    const url = 'https://example.com/x';
    expect(await resolvingTo('8.8.8.8', '2606:4700::1').problemOf(url)).toBeUndefined();
    expect(await resolvingTo('8.8.8.8', '10.0.0.1').problemOf(url)).toBeDefined();
    expect(await resolvingTo().problemOf(url)).toBeDefined();
  });

  test.each([
    ['168.63.129.16', '168.63.129.16'],
    ['[::8.8.8.8]', '::8.8.8.8'],
    ['[64:ff9b::8.8.8.8]', '64:ff9b::808:808'],
    ['[2002:808:808::]', '2002:808:808::'],
  ])('refuses %s, as a literal and as a resolved address', async (host, address) => {
    expect(await resolvingTo('8.8.8.8').problemOf(`https://${host}/`)).toBeDefined();
    expect(await resolvingTo('8.8.8.8', address).problemOf('https://example.com/')).toBeDefined();
  });

  test('refuses a name that does not resolve, which may be temporary', async () => {
    const policy = new EgressPolicy([], async () => {
      throw new Error('ENOTFOUND');
    });
    for (const refusing of [policy, resolvingTo()]) {
      expect(await refusing.problemOf('https://example.com/')).toBe(
        'has a host that does not resolve',
      );
      await expect(refusing.addressesOf('example.com', 443)).rejects.toMatchObject({
        code: 'egress_unresolved',
      });
    }
  });

  test('refuses a name with a private address for good', async () => {
    await expect(resolvingTo('10.0.0.1').addressesOf('example.com', 443)).rejects.toMatchObject({
      code: 'egress_refused',
      problem: 'has a host that is not public',
    });
  });

  test('asks the resolver of the system for every address of a name', async () => {
    const problem = await new EgressPolicy([]).problemOf('https://localhost/');
    expect(problem).toBe('has a host that is not public');
    const allowing = new EgressPolicy([{ host: 'localhost', port: undefined }]);
    expect(await allowing.addressesOf('localhost', 443)).toContain('127.0.0.1');
  });

  test.each([
    ['https://u:p@example.com/', 'must not hold credentials'],
    ['https://u@example.com/', 'must not hold credentials'],
    ['https://:p@example.com/', 'must not hold credentials'],
    ['https://example.com:444/', 'must use port 443 or one from 1024'],
    ['https://example.com:1023/', 'must use port 443 or one from 1024'],
    ['http://example.com/', 'must use https'],
    ['example.com', 'is not a URL'],
    ['https://example.com/', undefined],
    ['https://example.com:1024/', undefined],
  ])('%s: %s', async (url, problem) => {
    expect(resolvingTo('8.8.8.8').formProblemOf(url)).toBe(problem);
    expect(await resolvingTo('8.8.8.8').problemOf(url)).toBe(problem);
  });

  test('an exception need not resolve when it is checked', async () => {
    const allowed = [{ host: 'a.internal', port: undefined }];
    const policy = new EgressPolicy(allowed, async () => []);
    expect(await policy.problemOf('https://a.internal/')).toBeUndefined();
  });

  test('allows exceptions by host and port', async () => {
    const allowed = [
      { host: 'a.internal', port: 8443 },
      { host: 'b.internal', port: undefined },
    ];
    const policy = new EgressPolicy(allowed, async () => ['10.0.0.1']);
    expect(await policy.problemOf('https://a.internal:8443/')).toBeUndefined();
    expect(await policy.problemOf('https://A.internal:8443/')).toBeUndefined();
    expect(await policy.problemOf('https://a.internal/')).toBeDefined();
    expect(await policy.problemOf('https://b.internal:99/')).toBeUndefined();
    expect(await policy.problemOf('http://b.internal/')).toBeDefined();
    expect(await policy.problemOf('https://u:p@b.internal/')).toBeDefined();
  });

  test('does not throw for any text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.webUrl()), async (text) => {
        await resolvingTo('10.0.0.1').problemOf(text);
      }),
      { numRuns: 200 },
    );
  });
});
