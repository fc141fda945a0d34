import { GUEST_LINK } from '@svc/contract';
import { encode } from 'dns-packet';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as frames from '../../../test/network/frames.ts';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import type { TapGuest } from '../../../test/network/tap-guest.ts';
import { DNS_SERVER, ECHO_PORT } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import type { SlotLimits } from '../network-policy.ts';

const GATEWAY = GUEST_LINK.gateway;

let network: TestNetwork;
let guests: TapGuest[] = [];

beforeAll(async () => {
  network = await openTestNetwork();
});

afterEach(async () => {
  await Promise.all(guests.map((guest) => guest.close()));
  guests = [];
  await network.slots.call('close', []);
});

afterAll(async () => {
  await network?.close();
});

/** Two sandboxes with the given limits. */
async function openSandboxes(limits: Partial<SlotLimits>) {
  await network.slots.call('open', network.dataDir, { dnsServer: DNS_SERVER, limits });
  const [first, second] = [await network.slots.call('take'), await network.slots.call('take')];
  const flooder = await network.startTapGuest(first);
  const neighbour = await network.startTapGuest(second);
  guests = [flooder, neighbour];
  return { flooder, neighbour, netns: first.netns };
}

function answersFrom(guest: TapGuest, source: string): number {
  return guest.frames.filter((frame) => frames.readIpv4(frame)?.source === source).length;
}

function dnsQuery(id: number): Buffer {
  const questions = [{ type: 'A', name: `n${id}.example` }] as const;
  const query = encode({ type: 'query', id, flags: 0x100, questions: [...questions] });
  return frames.ipv4Frame({ destination: GATEWAY, payload: frames.udp(6000, 53, query) });
}

/** The response code of the first answer from the gateway to this guest's query. */
function resolveCode(guest: TapGuest): Promise<number> {
  return guest.ask(dnsQuery(5000), (frame) => {
    const packet = frames.readIpv4(frame);
    return packet?.source === GATEWAY ? (packet.payload[11] ?? 0) & 0x0f : undefined;
  });
}

test('leaves DNS queries beyond the rate unanswered and answers those of the neighbour', async () => {
  // Exceeds the number of queries from the neighbour, which repeats its query every second until it is answered.
  const burst = 20;
  await network.internet.call('serveDns', DNS_SERVER, {});
  const { flooder, neighbour } = await openSandboxes({ dnsRate: 1, dnsBurst: burst });
  const started = performance.now();
  for (let id = 1; id <= 150; id += 1) flooder.send(dnsQuery(id));
  expect(await resolveCode(neighbour)).toBe(3);
  await expect.poll(() => answersFrom(flooder, GATEWAY)).toBeGreaterThanOrEqual(burst);
  // Counted by name, because the forwarder repeats a query that is not answered quickly.
  const forwarded = async () => {
    const arrivals = await network.internet.call('arrivals');
    return new Set(arrivals.filter((text) => /^dns A n/.test(text) && !/n5000/.test(text)));
  };
  await expect.poll(async () => (await forwarded()).size).toBeGreaterThan(0);
  const { size } = await forwarded();
  const seconds = (performance.now() - started) / 1000;
  expect(size).toBeLessThanOrEqual(burst + seconds + 1);
  expect(answersFrom(flooder, GATEWAY)).toBeLessThanOrEqual(burst + seconds + 1);
});

test('drops a flood of packets to the DNS server before it reaches the host', async () => {
  const { flooder, neighbour } = await openSandboxes({ dnsRate: 1, dnsBurst: 1 });
  const started = performance.now();
  // All packets belong to one flow, so the limits on connections do not apply.
  const frame = dnsQuery(1);
  for (let count = 0; count < 3000; count += 1) flooder.send(frame);
  await flooder.settle();
  await neighbour.settle();
  const seconds = (performance.now() - started) / 1000;
  expect(answersFrom(flooder, GATEWAY)).toBeLessThan(401 + 200 * seconds);
});

test('a flood of connections uses up only the sandbox’s own limit', async () => {
  const connections = 60;
  const { flooder, neighbour, netns } = await openSandboxes({ connections });
  for (let port = 10_000; port < 10_250; port += 1) {
    const payload = frames.udp(port, ECHO_PORT);
    flooder.send(frames.ipv4Frame({ destination: DNS_SERVER, payload }));
  }
  await expect.poll(() => answersFrom(flooder, DNS_SERVER)).toBe(connections);
  await neighbour.settle();
  const count = await runInNetns(netns, 'cat', ['/proc/sys/net/netfilter/nf_conntrack_count']);
  expect(Number(count)).toBe(connections);
});

test('drops connections beyond the rate', async () => {
  const [connectionRate, connectionBurst] = [5, 40];
  const { flooder } = await openSandboxes({ connectionRate, connectionBurst });
  const started = performance.now();
  for (let n = 0; n < 250; n += 1) {
    flooder.send(frames.ipv4Frame({ destination: `8.8.4.${n}`, payload: frames.udp(7000, 9) }));
  }
  await flooder.settle();
  const reached = async () =>
    [...(await network.seen())].filter((address) => address.startsWith('8.8.4.')).length;
  await expect.poll(reached).toBeGreaterThanOrEqual(connectionBurst - 1);
  const count = await reached();
  const seconds = (performance.now() - started) / 1000;
  expect(count).toBeLessThanOrEqual(connectionBurst + seconds * connectionRate + 1);
});
