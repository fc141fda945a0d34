import { insideEdges, outsideEdges } from '@svc/service-kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { NetnsProcess } from '../../../test/network/netns-process.ts';
import type { Peer } from '../../../test/network/peer.ts';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import {
  DNS_SERVER,
  ECHO_PORT,
  HOST_ADDRESS,
  PUBLIC_ADDRESS,
} from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkSlot } from '../slots/network-slot.ts';

const PORT = 9;

// The worst case: an attacker has broken out of a VM, controls its whole network namespace and has removed the packet
// filter there. Only the host's filter remains.
let network: TestNetwork;
let instance: Instance;
let slot: NetworkSlot;
let otherSlot: NetworkSlot;
let attacker: NetnsProcess<Peer>;
let victim: NetnsProcess<Peer>;

beforeAll(async () => {
  network = await openTestNetwork();
  instance = await network.slots.call('open', network.dataDir, {});
  [slot, otherSlot] = [await network.slots.call('take'), await network.slots.call('take')];
  for (const { netns } of [slot, otherSlot]) await runInNetns(netns, 'nft', ['flush', 'ruleset']);
  attacker = await network.startPeer(slot.netns);
  victim = await network.startPeer(otherSlot.netns);
  await network.services.call('listenUdp', PORT, '0.0.0.0');
});

afterAll(async () => {
  await network?.slots.call('close', []);
  await network?.close();
});

const through = () => attacker.call('echo', ECHO_PORT, DNS_SERVER);

test('no special range is reachable, but the addresses next to each are', async () => {
  await attacker.call('sendUdp', insideEdges(), PORT);
  await attacker.call('sendUdp', outsideEdges(), PORT);
  await through();
  const seen = await network.seen();
  expect(insideEdges().filter((address) => seen.has(address))).toEqual([]);
  expect(outsideEdges().filter((address) => !seen.has(address))).toEqual([]);
});

test('no service of the host is reachable', async () => {
  const { hostAddress } = slotAddresses(instance.index, slot.index);
  const { hostAddress: otherHost } = slotAddresses(instance.index, otherSlot.index);
  const addresses = [HOST_ADDRESS, instance.serviceAddress, hostAddress, otherHost];
  await attacker.call('sendUdp', addresses, PORT);
  await through();
  expect(await network.services.call('arrivals')).toEqual([]);
});

test('the loopback addresses of the host are not reachable through its link', async () => {
  const { hostAddress } = slotAddresses(instance.index, slot.index);
  await runInNetns(slot.netns, 'sh', ['-c', 'echo 1 > /proc/sys/net/ipv4/conf/up0/route_localnet']);
  await runInNetns(slot.netns, 'ip', ['route', 'del', 'local', '127.0.0.0/8', 'dev', 'lo']).catch(
    () => undefined, // The route does not exist while the namespace's loopback device is down.
  );
  await runInNetns(slot.netns, 'ip', ['route', 'add', '127.0.0.0/8', 'via', hostAddress]);
  await attacker.call('sendUdp', ['127.0.0.1'], PORT);
  await through();
  expect(await network.services.call('arrivals')).toEqual([]);
});

test('no other sandbox is reachable', async () => {
  await victim.call('listenUdp', 22, otherSlot.address);
  await victim.call('listenUdp', 7000, otherSlot.address);
  await attacker.call('sendUdp', [otherSlot.address], 22);
  await attacker.call('sendUdp', [otherSlot.address], 7000);
  await through();
  await victim.call('echo', ECHO_PORT, DNS_SERVER);
  expect(await victim.call('arrivals')).toEqual([]);
});

test('packets pass only with the slot’s own source address', async () => {
  const sources = ['93.184.216.99', otherSlot.address, instance.serviceAddress];
  const targets = sources.map((_source, index) => `8.8.4.${index + 1}`);
  for (const [index, source] of sources.entries()) {
    await runInNetns(slot.netns, 'ip', ['addr', 'add', `${source}/32`, 'dev', 'up0']);
    await attacker.call('sendUdp', [`8.8.4.${index + 1}`], PORT, source);
  }
  await attacker.call('sendUdp', ['8.8.4.100'], PORT, slot.address);
  await through();
  const seen = await network.seen();
  expect(targets.filter((target) => seen.has(target))).toEqual([]);
  expect(seen).toContain('8.8.4.100');
});

test('IPv6 is dropped even when it has been enabled again', async () => {
  const enable = 'echo 0 > /proc/sys/net/ipv6/conf/DEVICE/disable_ipv6';
  await runInNetns(network.host, 'sh', ['-c', enable.replace('DEVICE', slot.netns)]);
  await runInNetns(slot.netns, 'sh', ['-c', enable.replace('DEVICE', 'up0')]);
  const add = ['-6', 'addr', 'add'];
  await runInNetns(network.host, 'ip', [...add, 'fd00::1/64', 'dev', slot.netns, 'nodad']);
  await runInNetns(slot.netns, 'ip', [...add, 'fd00::2/64', 'dev', 'up0', 'nodad']);
  await network.services.call('listenUdp', PORT + 1, 'fd00::1');
  await attacker.call('sendUdp', ['fd00::1'], PORT + 1);
  await through();
  expect(await network.services.call('arrivals')).toEqual([]);
});

test('slots and the service address are not reachable from outside', async () => {
  await victim.call('listenUdp', 5353, otherSlot.address);
  await network.routeToSlots(instance);
  await network.internet.call('sendUdp', [otherSlot.address, instance.serviceAddress], 5353);
  await network.internet.call('sendUdp', [instance.serviceAddress], PORT);
  await victim.call('echo', ECHO_PORT, DNS_SERVER);
  expect(await victim.call('arrivals')).toEqual([]);
  expect(await network.services.call('arrivals')).toEqual([]);
});

test('the host drops closed connections within 10 s, and idle ones within the maximum lifetime of a sandbox', async () => {
  const timeoutOf = async (state: string) => {
    const entries = await runInNetns(network.host, 'conntrack', [
      '-L',
      '-p',
      'tcp',
      '-s',
      slot.address,
    ]);
    return Number(new RegExp(`^tcp +6 (\\d+) ${state}`, 'm').exec(entries)?.[1]);
  };
  await network.internet.call('holdTcp', 81);
  await attacker.call('holdOpen', PUBLIC_ADDRESS, 81);
  expect(await timeoutOf('ESTABLISHED')).toBeLessThanOrEqual(7200);
  expect(await attacker.call('tcp', PUBLIC_ADDRESS, 80)).toMatch(/^connected/);
  await expect.poll(() => timeoutOf('TIME_WAIT')).toBeLessThanOrEqual(10);
});

test('clamps the TCP segment size to the MTU of the outgoing link', async () => {
  await runInNetns(network.host, 'ip', ['link', 'set', 'eth0', 'mtu', '1300']);
  await runInNetns(
    network.world,
    'nft',
    ['-f', '-'],
    `add counter ip test small
add rule ip test prerouting tcp flags syn tcp option maxseg size 1260 counter name small
`,
  );
  expect(await attacker.call('tcp', PUBLIC_ADDRESS, 80)).toMatch(/^connected/);
  const counter = await runInNetns(network.world, 'nft', [
    'list',
    'counter',
    'ip',
    'test',
    'small',
  ]);
  // More than one when the first was retransmitted.
  expect(counter).toMatch(/packets [1-9]/);
});
