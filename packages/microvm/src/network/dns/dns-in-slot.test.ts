import { GUEST_LINK } from '@svc/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NetnsGuest } from '../../../test/network/netns-guest.ts';
import { DNS_SERVER, PUBLIC_ADDRESS } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';

let network: TestNetwork;
let guest: NetnsGuest;

const a = (name: string, data: string) => ({ type: 'A', name, ttl: 1, data }) as const;

beforeAll(async () => {
  network = await openTestNetwork();
  await network.internet.call('serveDns', DNS_SERVER, {
    'public.example': [a('public.example', PUBLIC_ADDRESS)],
    'mixed.example': [a('mixed.example', '10.1.2.3'), a('mixed.example', PUBLIC_ADDRESS)],
    'metadata.example': [a('metadata.example', '169.254.169.254')],
    'loopback.example': [a('loopback.example', '127.0.0.1')],
    'text.example': [{ type: 'TXT', name: 'text.example', ttl: 1, data: ['hello'] }],
    'six.example': [{ type: 'AAAA', name: 'six.example', ttl: 1, data: '2600::1' }],
    'router.lan': [a('router.lan', PUBLIC_ADDRESS)],
  });
  await network.slots.call('open', network.dataDir, { dnsServer: DNS_SERVER });
  guest = await network.startNetnsGuest(await network.slots.call('take'));
});

afterAll(async () => {
  await network?.slots.call('close', []);
  await network?.close();
});

const look = (name: string, type: 'A' | 'AAAA' | 'TXT' = 'A') =>
  guest.peer.call('resolve', name, GUEST_LINK.gateway, type);

test('answers with public addresses and texts', async () => {
  expect(await look('public.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await look('text.example', 'TXT')).toEqual([['hello']]);
});

test('removes addresses that are not public', async () => {
  expect(await look('mixed.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await look('metadata.example')).toBe('ENODATA');
  expect(await look('loopback.example')).toBe('ENODATA');
});

test('gives no IPv6 addresses', async () => {
  expect(await look('six.example', 'AAAA')).toBe('ENODATA');
});

test('does not forward names of the local network', async () => {
  expect(await look('router.lan')).toBe('ENOTFOUND');
  expect(await network.internet.call('arrivals')).not.toContain('dns A router.lan');
});

test('no other DNS server on the host is reachable', async () => {
  await network.services.call('serveDns', '0.0.0.0', { 'public.example': [] });
  expect(await look('public.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await network.services.call('arrivals')).toEqual([]);
});
