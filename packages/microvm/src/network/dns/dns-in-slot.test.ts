import { GUEST_LINK } from '@svc/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Lab, openLab } from '../testing/lab.ts';
import { DNS_SERVER, PUBLIC_ADDRESS } from '../testing/lab-addresses.ts';
import type { StackGuest } from '../testing/stack-guest.ts';

let lab: Lab;
let guest: StackGuest;

const a = (name: string, data: string) => ({ type: 'A', name, ttl: 1, data }) as const;

beforeAll(async () => {
  lab = await openLab();
  await lab.internet.call('serveDns', DNS_SERVER, {
    'public.example': [a('public.example', PUBLIC_ADDRESS)],
    'mixed.example': [a('mixed.example', '10.1.2.3'), a('mixed.example', PUBLIC_ADDRESS)],
    'metadata.example': [a('metadata.example', '169.254.169.254')],
    'loopback.example': [a('loopback.example', '127.0.0.1')],
    'text.example': [{ type: 'TXT', name: 'text.example', ttl: 1, data: ['hello'] }],
    'six.example': [{ type: 'AAAA', name: 'six.example', ttl: 1, data: '2600::1' }],
    'router.lan': [a('router.lan', PUBLIC_ADDRESS)],
  });
  await lab.slots.call('open', lab.dataDir, { dnsServer: DNS_SERVER });
  guest = await lab.startStackGuest(await lab.slots.call('take'));
});

afterAll(async () => {
  await lab?.slots.call('close', []);
  await lab?.close();
});

const look = (name: string, type: 'A' | 'AAAA' | 'TXT' = 'A') =>
  guest.peer.call('resolve', name, GUEST_LINK.gateway, type);

test('public addresses and texts are answered', async () => {
  expect(await look('public.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await look('text.example', 'TXT')).toEqual([['hello']]);
});

test('a name never leads to an address that is not public', async () => {
  expect(await look('mixed.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await look('metadata.example')).toBe('ENODATA');
  expect(await look('loopback.example')).toBe('ENODATA');
});

test('there are no IPv6 answers', async () => {
  expect(await look('six.example', 'AAAA')).toBe('ENODATA');
});

test('names of the machine’s own network are not even asked for', async () => {
  expect(await look('router.lan')).toBe('ENOTFOUND');
  expect(await lab.internet.call('arrivals')).not.toContain('dns A router.lan');
});

test('no other DNS server inside the host is reached', async () => {
  await lab.services.call('serveDns', '0.0.0.0', { 'public.example': [] });
  expect(await look('public.example')).toEqual([PUBLIC_ADDRESS]);
  expect(await lab.services.call('arrivals')).toEqual([]);
});
