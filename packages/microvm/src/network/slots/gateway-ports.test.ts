import { GUEST_LINK } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NetnsGuest } from '../../../test/network/netns-guest.ts';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import { HOST_ADDRESS } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkSlot } from './network-slot.ts';

const PORT = 7200;
const OTHER_PORT = 7201;
const { gateway: GATEWAY } = GUEST_LINK;

let network: TestNetwork;
let instance: Instance;
let slot: NetworkSlot;
let guest: NetnsGuest;

beforeAll(async () => {
  network = await openTestNetwork();
  instance = await network.slots.call('open', network.dataDir, { gatewayPorts: [PORT] });
  slot = await network.slots.call('take');
  guest = await network.startNetnsGuest(slot);
  // The services listen on all addresses, so only the filters can block a connection.
  await network.services.call('listenTcp', PORT);
  await network.services.call('listenTcp', OTHER_PORT);
});

afterAll(async () => {
  await network?.slots.call('close', []);
  await network?.close();
});

describe('a guest', () => {
  test('reaches a gateway port of its host from the address of its slot', async () => {
    expect(await guest.peer.call('tcp', GATEWAY, PORT)).toBe(`connected ${slot.address}`);
  });

  test('reaches no other port, and no other address of the host', async () => {
    const before = await network.services.call('arrivals');
    const closed = [
      [GATEWAY, OTHER_PORT],
      [instance.serviceAddress, PORT],
      [instance.serviceAddress, OTHER_PORT],
      [HOST_ADDRESS, PORT],
      [HOST_ADDRESS, OTHER_PORT],
    ] as const;
    for (const [address, port] of closed) {
      expect(await guest.peer.call('tcp', address, port, 500)).not.toMatch(/^connected/);
    }
    expect(await network.services.call('arrivals')).toEqual(before);
  });
});

// The worst case: an attacker has broken out of a VM and removed the packet filter of its namespace.
test('a process that controls a network namespace reaches only the gateway port of its host', async () => {
  const own = await network.slots.call('take');
  await runInNetns(own.netns, 'nft', ['flush', 'ruleset']);
  const attacker = await network.startPeer(own.netns);
  const { serviceAddress } = instance;
  expect(await attacker.call('tcp', serviceAddress, PORT)).toBe(`connected ${own.address}`);
  expect(await attacker.call('tcp', serviceAddress, OTHER_PORT, 500)).not.toMatch(/^connected/);
  expect(await attacker.call('tcp', HOST_ADDRESS, PORT, 500)).not.toMatch(/^connected/);
});
