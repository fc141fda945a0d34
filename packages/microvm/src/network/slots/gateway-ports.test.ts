import { GUEST_LINK } from '@svc/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Instance } from '../instance/instance.ts';
import { type Lab, openLab } from '../testing/lab.ts';
import { HOST_ADDRESS } from '../testing/lab-addresses.ts';
import { runIn } from '../testing/run-in.ts';
import type { StackGuest } from '../testing/stack-guest.ts';
import type { NetworkSlot } from './network-slot.ts';

const PORT = 7200;
const OTHER_PORT = 7201;
const { gateway: GATEWAY } = GUEST_LINK;

let lab: Lab;
let instance: Instance;
let slot: NetworkSlot;
let guest: StackGuest;

beforeAll(async () => {
  lab = await openLab();
  instance = await lab.slots.call('open', lab.dataDir, { gatewayPorts: [PORT] });
  slot = await lab.slots.call('take');
  guest = await lab.startStackGuest(slot);
  // Everything listens everywhere: what is not reached was stopped by the filters.
  await lab.services.call('listenTcp', PORT);
  await lab.services.call('listenTcp', OTHER_PORT);
});

afterAll(async () => {
  await lab?.slots.call('close', []);
  await lab?.close();
});

describe('a guest', () => {
  test('reaches a gateway port of its host, which knows it by its address', async () => {
    expect(await guest.peer.call('tcp', GATEWAY, PORT)).toBe(`connected ${slot.host}`);
  });

  test('reaches it on the gateway’s address alone, and no other port', async () => {
    const before = await lab.services.call('arrivals');
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
    expect(await lab.services.call('arrivals')).toEqual(before);
  });
});

// The worst case: a VM that broke out and has thrown the packet filter of its namespace away.
test('what owns a network namespace reaches the gateway port and no other of its host', async () => {
  const own = await lab.slots.call('take');
  await runIn(own.netns, 'nft', ['flush', 'ruleset']);
  const attacker = await lab.startPeer(own.netns);
  const { serviceAddress } = instance;
  expect(await attacker.call('tcp', serviceAddress, PORT)).toBe(`connected ${own.host}`);
  expect(await attacker.call('tcp', serviceAddress, OTHER_PORT, 500)).not.toMatch(/^connected/);
  expect(await attacker.call('tcp', HOST_ADDRESS, PORT, 500)).not.toMatch(/^connected/);
});
