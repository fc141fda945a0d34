import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Lab, openLab } from '../testing/lab.ts';
import { DNS_SERVER, HOST_ADDRESS, PUBLIC_ADDRESS } from '../testing/lab-addresses.ts';
import type { StackGuest } from '../testing/stack-guest.ts';
import type { NetworkSlot } from './network-slot.ts';

let lab: Lab;
let slot: NetworkSlot;
let guest: StackGuest;

beforeAll(async () => {
  lab = await openLab();
  await lab.internet.call('serveDns', DNS_SERVER, {
    'public.example': [{ type: 'A', name: 'public.example', ttl: 60, data: PUBLIC_ADDRESS }],
  });
  await lab.slots.call('open', lab.dataDir, { dnsServer: DNS_SERVER });
  slot = await lab.slots.call('take');
  guest = await lab.startStackGuest(slot);
});

afterAll(async () => {
  await lab?.slots.call('close', []);
  await lab?.close();
});

describe('a guest', () => {
  test('reaches public addresses from the host’s own address', async () => {
    expect(await guest.peer.call('tcp', PUBLIC_ADDRESS, 80)).toBe(`connected ${HOST_ADDRESS}`);
  });

  test('resolves names through its gateway', async () => {
    expect(await guest.peer.call('resolve', 'public.example', '172.30.0.1')).toEqual([
      PUBLIC_ADDRESS,
    ]);
  });

  test('is told at once that a closed destination is closed', async () => {
    expect(await guest.peer.call('tcp', '10.1.2.3', 80)).toBe('ECONNREFUSED');
  });

  test.each([22, 7000, 7100])('is reached by its host on port %i', async (port) => {
    await guest.peer.call('listenTcp', port);
    expect(await lab.services.call('tcp', slot.host, port)).toBe('connected 172.30.0.1');
  });

  test('is reached by its host on no other port', async () => {
    await guest.peer.call('listenTcp', 8080);
    expect(await lab.services.call('tcp', slot.host, 8080, 500)).not.toMatch(/^connected/);
  });
});
