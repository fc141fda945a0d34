import { access } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import { DNS_SERVER, ECHO_PORT } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import { networkNames } from './existing-slots.ts';

let network: TestNetwork;

beforeAll(async () => {
  network = await openTestNetwork();
});

// Does nothing after a test that has closed the network itself.
afterEach(async () => {
  await network.slots.call('close', []);
});

afterAll(async () => {
  await network?.close();
});

/** Everything of an instance that still exists in the kernel. */
async function traces(instance: Instance): Promise<string[]> {
  const netns = [...(await networkNames())].filter((name) => name.startsWith(`${instance.name}-`));
  const links = await runInNetns(network.host, 'ip', ['-br', 'link']);
  const addresses = await runInNetns(network.host, 'ip', ['-br', 'addr']);
  const routes = await runInNetns(network.host, 'ip', ['route']);
  const tables = await runInNetns(network.host, 'nft', ['list', 'tables']);
  const lines = [links, addresses, routes, tables].join('\n').split('\n');
  const pattern = new RegExp(
    `${instance.name}([-_]|$)|${instance.block}|${instance.serviceAddress}`,
  );
  return [...netns, ...lines.filter((line) => pattern.test(line))];
}

test('closing a network removes everything', async () => {
  const instance = await network.slots.call('open', network.dataDir, { poolSize: 2 });
  const taken = await network.slots.call('take');
  expect(await traces(instance)).not.toEqual([]);
  await network.slots.call('close', []);
  expect(await traces(instance)).toEqual([]);
  await expect(access(instance.runDir)).rejects.toThrow('ENOENT');
  await expect(network.slots.call('take')).rejects.toMatchObject({ code: 'network_closed' });
  await network.slots.call('release', taken);
});

test('a released slot is removed, and its index is not reused next', async () => {
  await network.slots.call('open', network.dataDir, {});
  const first = await network.slots.call('take');
  await network.slots.call('release', first);
  await network.slots.call('release', first);
  expect(await networkNames()).not.toContain(first.netns);
  expect((await network.slots.call('take')).index).not.toBe(first.index);
  await network.slots.call('close', []);
});

test('the host drops the tracked connections of a released slot', async () => {
  const instance = await network.slots.call('open', network.dataDir, {});
  const slot = await network.slots.call('take');
  const guest = await network.startNetnsGuest(slot);
  await guest.peer.call('echo', ECHO_PORT, DNS_SERVER);
  const { slotAddress } = slotAddresses(instance.index, slot.index);
  const list = () => runInNetns(network.host, 'conntrack', ['-L', '-s', slotAddress]);
  expect(await list()).toContain(slotAddress);
  await guest.close();
  await network.slots.call('release', slot);
  expect(await list()).not.toContain(slotAddress);
  await network.slots.call('close', []);
});

test('the pool refills itself and serves concurrent takes', async () => {
  await network.slots.call('open', network.dataDir, { poolSize: 3 });
  await expect.poll(() => network.slots.call('ready')).toBe(3);
  const slots = await Promise.all([1, 2, 3, 4, 5].map(() => network.slots.call('take')));
  expect(new Set(slots.map((slot) => slot.index)).size).toBe(5);
  await expect.poll(() => network.slots.call('ready')).toBe(3);
  await network.slots.call('close', []);
});

test('after a crash, slots of running VMs are adopted and all others are removed', async () => {
  const crashed = await network.startSlots();
  const instance = await crashed.call('open', network.dataDir, { poolSize: 1 });
  const alive = await crashed.call('take');
  const dead = await crashed.call('take');
  const guest = await network.startNetnsGuest(alive);
  await crashed.close();

  const restarted = await network.startSlots();
  const again = await restarted.call('open', network.dataDir, { keep: [alive.index, 2047] });
  expect(again.index).toBe(instance.index);
  expect(await networkNames()).not.toContain(dead.netns);
  expect(await restarted.call('adopt', alive.index)).toEqual(alive);
  await guest.peer.call('echo', ECHO_PORT, DNS_SERVER);
  for (const index of [alive.index, dead.index, 2047]) {
    await expect(restarted.call('adopt', index)).rejects.toMatchObject({ code: 'slot_not_found' });
  }
  await guest.close();
  await restarted.call('release', alive);
  await restarted.call('close', []);
  expect(await traces(instance)).toEqual([]);
});

test('closing with kept VMs leaves their network and the instance claim in place', async () => {
  const first = await network.startSlots();
  const instance = await first.call('open', network.dataDir, {});
  const kept = await first.call('take');
  const ended = await first.call('take');
  const guest = await network.startNetnsGuest(kept);
  await first.call('close', [kept.index]);
  expect(await networkNames()).not.toContain(ended.netns);
  await guest.peer.call('echo', ECHO_PORT, DNS_SERVER);

  const next = await network.startSlots();
  expect((await next.call('open', network.dataDir, { keep: [kept.index] })).index).toBe(
    instance.index,
  );
  await next.call('adopt', kept.index);
  await guest.close();
  await next.call('close', []);
  expect(await traces(instance)).toEqual([]);
});

test('reports the changes that opening made to the machine', async () => {
  await runInNetns(network.host, 'sh', ['-c', 'echo 0 > /proc/sys/net/ipv4/ip_forward']);
  await network.slots.call('open', network.dataDir, {});
  expect(await network.slots.call('hostChanges')).toContainEqual(
    expect.stringContaining('IPv4 forwarding'),
  );
  await network.slots.call('close', []);
});
