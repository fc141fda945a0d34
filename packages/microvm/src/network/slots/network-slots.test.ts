import { access } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import { type Lab, openLab } from '../testing/lab.ts';
import { DNS_SERVER, ECHO_PORT } from '../testing/lab-addresses.ts';
import { runIn } from '../testing/run-in.ts';
import { networkNames } from './remove-slots.ts';

let lab: Lab;

beforeEach(async () => {
  lab = await openLab();
});

afterEach(async () => {
  await lab.close();
});

/** Everything of an instance that the kernel still knows. */
async function traces(instance: Instance): Promise<string[]> {
  const netns = [...(await networkNames())].filter((name) => name.startsWith(`${instance.name}-`));
  const links = await runIn(lab.host, 'ip', ['-br', 'link']);
  const addresses = await runIn(lab.host, 'ip', ['-br', 'addr']);
  const routes = await runIn(lab.host, 'ip', ['route']);
  const tables = await runIn(lab.host, 'nft', ['list', 'tables']);
  const lines = [links, addresses, routes, tables].join('\n').split('\n');
  const pattern = new RegExp(`${instance.name}(-|$)|${instance.block}|${instance.serviceAddress}`);
  return [...netns, ...lines.filter((line) => pattern.test(line))];
}

test('a closed network leaves nothing behind', async () => {
  const instance = await lab.slots.call('open', lab.dataDir, { stock: 2 });
  const taken = await lab.slots.call('take');
  expect(await traces(instance)).not.toEqual([]);
  await lab.slots.call('close', []);
  expect(await traces(instance)).toEqual([]);
  await expect(access(instance.runDir)).rejects.toThrow('ENOENT');
  await expect(lab.slots.call('take')).rejects.toMatchObject({ code: 'network_closed' });
  await lab.slots.call('release', taken);
});

test('a released slot is gone, and its index is not the next to be used', async () => {
  await lab.slots.call('open', lab.dataDir, {});
  const first = await lab.slots.call('take');
  await lab.slots.call('release', first);
  await lab.slots.call('release', first);
  expect(await networkNames()).not.toContain(first.netns);
  expect((await lab.slots.call('take')).index).not.toBe(first.index);
  await lab.slots.call('close', []);
});

test('connections of a released slot are forgotten by the host', async () => {
  const instance = await lab.slots.call('open', lab.dataDir, {});
  const slot = await lab.slots.call('take');
  const guest = await lab.startStackGuest(slot);
  await guest.peer.call('echo', ECHO_PORT, DNS_SERVER);
  const { outer } = slotAddresses(instance.index, slot.index);
  const list = () => runIn(lab.host, 'conntrack', ['-L', '-s', outer]);
  expect(await list()).toContain(outer);
  await guest.close();
  await lab.slots.call('release', slot);
  expect(await list()).not.toContain(outer);
  await lab.slots.call('close', []);
});

test('the stock fills itself, and serves takes at once', async () => {
  await lab.slots.call('open', lab.dataDir, { stock: 3 });
  await expect.poll(() => lab.slots.call('ready')).toBe(3);
  const slots = await Promise.all([1, 2, 3, 4, 5].map(() => lab.slots.call('take')));
  expect(new Set(slots.map((slot) => slot.index)).size).toBe(5);
  await expect.poll(() => lab.slots.call('ready')).toBe(3);
  await lab.slots.call('close', []);
});

test('after a crash the slots of living VMs are adopted, and the others are cleaned up', async () => {
  const instance = await lab.slots.call('open', lab.dataDir, { stock: 1 });
  const alive = await lab.slots.call('take');
  const dead = await lab.slots.call('take');
  const guest = await lab.startStackGuest(alive);
  await lab.slots.close();

  const restarted = await lab.startSlots();
  const again = await restarted.call('open', lab.dataDir, { keep: [alive.index, 2047] });
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

test('a close that keeps VMs leaves their network working, and the claim in place', async () => {
  const instance = await lab.slots.call('open', lab.dataDir, {});
  const kept = await lab.slots.call('take');
  const ended = await lab.slots.call('take');
  const guest = await lab.startStackGuest(kept);
  await lab.slots.call('close', [kept.index]);
  expect(await networkNames()).not.toContain(ended.netns);
  await guest.peer.call('echo', ECHO_PORT, DNS_SERVER);

  const next = await lab.startSlots();
  expect((await next.call('open', lab.dataDir, { keep: [kept.index] })).index).toBe(instance.index);
  await next.call('adopt', kept.index);
  await guest.close();
  await next.call('close', []);
  expect(await traces(instance)).toEqual([]);
});

test('what opening changed on the machine is told', async () => {
  await runIn(lab.host, 'sh', ['-c', 'echo 0 > /proc/sys/net/ipv4/ip_forward']);
  await lab.slots.call('open', lab.dataDir, {});
  expect(await lab.slots.call('hostChanges')).toContainEqual(
    expect.stringContaining('IPv4 forwarding'),
  );
  await lab.slots.call('close', []);
});
