import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NetnsGuest } from '../../../test/network/netns-guest.ts';
import { DNS_SERVER, HOST_ADDRESS, PUBLIC_ADDRESS } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import type { NetworkSlot } from './network-slot.ts';

let network: TestNetwork;
let slot: NetworkSlot;
let guest: NetnsGuest;

beforeAll(async () => {
  network = await openTestNetwork();
  await network.internet.call('serveDns', DNS_SERVER, {
    'public.example': [{ type: 'A', name: 'public.example', ttl: 60, data: PUBLIC_ADDRESS }],
  });
  await network.slots.call('open', network.dataDir, { dnsServer: DNS_SERVER });
  slot = await network.slots.call('take');
  guest = await network.startNetnsGuest(slot);
});

afterAll(async () => {
  await network?.slots.call('close', []);
  await network?.close();
});

describe('a guest', () => {
  test('reaches public addresses, with the host’s address as source', async () => {
    expect(await guest.peer.call('tcp', PUBLIC_ADDRESS, 80)).toBe(`connected ${HOST_ADDRESS}`);
  });

  test('resolves names through its gateway', async () => {
    expect(await guest.peer.call('resolve', 'public.example', '172.30.0.1')).toEqual([
      PUBLIC_ADDRESS,
    ]);
  });

  test('gets an immediate refusal for a blocked destination', async () => {
    expect(await guest.peer.call('tcp', '10.1.2.3', 80)).toBe('ECONNREFUSED');
  });

  test.each([22, 7000, 7100])('is reachable from its host on port %i', async (port) => {
    await guest.peer.call('listenTcp', port);
    expect(await network.services.call('tcp', slot.address, port)).toBe('connected 172.30.0.1');
  });

  test('is not reachable from its host on other ports', async () => {
    await guest.peer.call('listenTcp', 8080);
    expect(await network.services.call('tcp', slot.address, 8080, 500)).not.toMatch(/^connected/);
  });
});
