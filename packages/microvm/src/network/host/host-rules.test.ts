import { insideEdges, outsideEdges } from '@svc/service-kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkSlot } from '../slots/network-slot.ts';
import { type Lab, openLab } from '../testing/lab.ts';
import { DNS_SERVER, ECHO_PORT, HOST_ADDRESS, PUBLIC_ADDRESS } from '../testing/lab-addresses.ts';
import type { NetnsProcess } from '../testing/netns-process.ts';
import type { Peer } from '../testing/peer.ts';
import { runIn } from '../testing/run-in.ts';

const PORT = 9;

// The worst case: a VM that broke out, owns its whole network namespace and has thrown the packet
// filter there away. Only the host's own filter is left.
let lab: Lab;
let instance: Instance;
let slot: NetworkSlot;
let otherSlot: NetworkSlot;
let attacker: NetnsProcess<Peer>;
let victim: NetnsProcess<Peer>;

beforeAll(async () => {
  lab = await openLab();
  instance = await lab.slots.call('open', lab.dataDir, {});
  [slot, otherSlot] = [await lab.slots.call('take'), await lab.slots.call('take')];
  for (const { netns } of [slot, otherSlot]) await runIn(netns, 'nft', ['flush', 'ruleset']);
  attacker = await lab.startPeer(slot.netns);
  victim = await lab.startPeer(otherSlot.netns);
  await lab.services.call('listenUdp', PORT, '0.0.0.0');
});

afterAll(async () => {
  await lab?.slots.call('close', []);
  await lab?.close();
});

const through = () => attacker.call('echo', ECHO_PORT, DNS_SERVER);

test('no special range is reached, and the addresses next to each are', async () => {
  await attacker.call('sendUdp', insideEdges(), PORT);
  await attacker.call('sendUdp', outsideEdges(), PORT);
  await through();
  const seen = await lab.seen();
  expect(insideEdges().filter((address) => seen.has(address))).toEqual([]);
  expect(outsideEdges().filter((address) => !seen.has(address))).toEqual([]);
});

test('no service of the host is reached', async () => {
  const { host } = slotAddresses(instance.index, slot.index);
  const { host: otherHost } = slotAddresses(instance.index, otherSlot.index);
  const addresses = [HOST_ADDRESS, instance.serviceAddress, host, otherHost];
  await attacker.call('sendUdp', addresses, PORT);
  await through();
  expect(await lab.services.call('arrivals')).toEqual([]);
});

test('the loopback addresses of the host are not reached through its link', async () => {
  const { host } = slotAddresses(instance.index, slot.index);
  await runIn(slot.netns, 'sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/conf/up0/route_localnet']);
  await runIn(slot.netns, 'ip', ['route', 'del', 'local', '127.0.0.0/8', 'dev', 'lo']).catch(
    () => undefined, // Absent while the namespace's loopback device is down.
  );
  await runIn(slot.netns, 'ip', ['route', 'add', '127.0.0.0/8', 'via', host]);
  await attacker.call('sendUdp', ['127.0.0.1'], PORT);
  await through();
  expect(await lab.services.call('arrivals')).toEqual([]);
});

test('no other sandbox is reached', async () => {
  await victim.call('listenUdp', 22, otherSlot.host);
  await victim.call('listenUdp', 7000, otherSlot.host);
  await attacker.call('sendUdp', [otherSlot.host], 22);
  await attacker.call('sendUdp', [otherSlot.host], 7000);
  await through();
  await victim.call('echo', ECHO_PORT, DNS_SERVER);
  expect(await victim.call('arrivals')).toEqual([]);
});

test('no other source address than the slot’s own gets out', async () => {
  const sources = ['93.184.216.99', otherSlot.host, instance.serviceAddress];
  const targets = sources.map((_source, index) => `8.8.4.${index + 1}`);
  for (const [index, source] of sources.entries()) {
    await runIn(slot.netns, 'ip', ['addr', 'add', `${source}/32`, 'dev', 'up0']);
    await attacker.call('sendUdp', [`8.8.4.${index + 1}`], PORT, source);
  }
  await attacker.call('sendUdp', ['8.8.4.100'], PORT, slot.host);
  await through();
  const seen = await lab.seen();
  expect(targets.filter((target) => seen.has(target))).toEqual([]);
  expect(seen).toContain('8.8.4.100');
});

test('IPv6 does not get in, even where someone turned it on again', async () => {
  const turnOn = 'echo 0 > /proc/sys/net/ipv6/conf/DEVICE/disable_ipv6';
  await runIn(lab.host, 'sh', ['-c', turnOn.replace('DEVICE', slot.netns)]);
  await runIn(slot.netns, 'sh', ['-c', turnOn.replace('DEVICE', 'up0')]);
  const add = ['-6', 'addr', 'add'];
  await runIn(lab.host, 'ip', [...add, 'fd00::1/64', 'dev', slot.netns, 'nodad']);
  await runIn(slot.netns, 'ip', [...add, 'fd00::2/64', 'dev', 'up0', 'nodad']);
  await lab.services.call('listenUdp', PORT + 1, 'fd00::1');
  await attacker.call('sendUdp', ['fd00::1'], PORT + 1);
  await through();
  expect(await lab.services.call('arrivals')).toEqual([]);
});

test('nothing outside reaches a slot or the service address', async () => {
  await victim.call('listenUdp', 5353, otherSlot.host);
  await lab.routeToSlots(instance);
  await lab.internet.call('sendUdp', [otherSlot.host, instance.serviceAddress], 5353);
  await lab.internet.call('sendUdp', [instance.serviceAddress], PORT);
  await victim.call('echo', ECHO_PORT, DNS_SERVER);
  expect(await victim.call('arrivals')).toEqual([]);
  expect(await lab.services.call('arrivals')).toEqual([]);
});

test('the host forgets closed connections soon, and open ones when no sandbox can live any more', async () => {
  const timeoutOf = async (state: string) => {
    const entries = await runIn(lab.host, 'conntrack', ['-L', '-p', 'tcp', '-s', slot.host]);
    return Number(new RegExp(`^tcp +6 (\\d+) ${state}`, 'm').exec(entries)?.[1]);
  };
  await lab.internet.call('holdTcp', 81);
  await attacker.call('holdOpen', PUBLIC_ADDRESS, 81);
  expect(await timeoutOf('ESTABLISHED')).toBeLessThanOrEqual(7200);
  expect(await attacker.call('tcp', PUBLIC_ADDRESS, 80)).toMatch(/^connected/);
  await expect.poll(() => timeoutOf('TIME_WAIT')).toBeLessThanOrEqual(10);
});

test('segments are made to fit the way out', async () => {
  await runIn(lab.host, 'ip', ['link', 'set', 'eth0', 'mtu', '1300']);
  await runIn(
    lab.world,
    'nft',
    ['-f', '-'],
    `add counter ip lab small
add rule ip lab prerouting tcp flags syn tcp option maxseg size 1260 counter name small
`,
  );
  expect(await attacker.call('tcp', PUBLIC_ADDRESS, 80)).toMatch(/^connected/);
  const counter = await runIn(lab.world, 'nft', ['list', 'counter', 'ip', 'lab', 'small']);
  // More where the first was sent again.
  expect(counter).toMatch(/packets [1-9]/);
});
