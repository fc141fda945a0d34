import { GUEST_LINK } from '@svc/contract';
import { encode } from 'dns-packet';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import * as frames from '../../../test/network/frames.ts';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import type { TapGuest } from '../../../test/network/tap-guest.ts';
import { DNS_SERVER, PUBLIC_ADDRESS } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import type { NetworkSlot } from '../slots/network-slot.ts';

const { syn, ack, rst } = frames.TCP_FLAGS;
const HOLDING_PORT = 81;
const BLOCKED_ADDRESS = '10.0.0.1';
const LIMIT = 30;
const limits = {
  ...{ connections: LIMIT, trackedConnections: LIMIT },
  ...{ connectionRate: 1000, connectionBurst: 1000 },
};
const options = { dnsServer: DNS_SERVER, limits };

let network: TestNetwork;
let guests: TapGuest[] = [];

beforeAll(async () => {
  network = await openTestNetwork();
  await network.internet.call('holdTcp', HOLDING_PORT);
  await network.internet.call('serveDns', DNS_SERVER, {});
});

afterEach(async () => {
  await Promise.all(guests.map((guest) => guest.close()));
  guests = [];
  await network.slots.call('close', []);
});

afterAll(async () => {
  await network?.close();
});

async function startGuest(slot: NetworkSlot): Promise<TapGuest> {
  const guest = await network.startTapGuest(slot);
  guests.push(guest);
  return guest;
}

/** The entries of a sandbox in the host's connection table, one line each. */
async function entriesOf(slot: NetworkSlot): Promise<string[]> {
  const listing = await runInNetns(network.host, 'conntrack', ['-L', '-s', slot.address]);
  return listing.split('\n').filter((line) => line.includes(`src=${slot.address}`));
}

function segment(sourcePort: number, sequence: number, flags: number, acknowledgement?: number) {
  return frames.tcp({
    ...{ destination: PUBLIC_ADDRESS, sourcePort, destinationPort: HOLDING_PORT },
    ...{ sequence, flags, acknowledgement: acknowledgement ?? 0 },
  });
}

function sendSegment(guest: TapGuest, payload: Buffer, ttl = 64): void {
  guest.send(frames.ipv4Frame({ destination: PUBLIC_ADDRESS, protocol: 6, payload, ttl }));
}

/** Opens a connection and resets it with a packet that travels `ttl` hops. */
async function openAndReset(guest: TapGuest, port: number, ttl: number): Promise<void> {
  const first = segment(port, 1, syn);
  const frame = frames.ipv4Frame({ destination: PUBLIC_ADDRESS, protocol: 6, payload: first });
  const sequence = await guest.ask(frame, (received) => {
    const packet = frames.readIpv4(received);
    if (packet?.source !== PUBLIC_ADDRESS || packet.protocol !== 6) return undefined;
    return packet.payload.readUInt16BE(2) === port ? packet.payload.readUInt32BE(4) : undefined;
  });
  sendSegment(guest, segment(port, 2, ack, sequence + 1));
  sendSegment(guest, segment(port, 2, rst | ack, sequence + 1), ttl);
}

/** Settles when the slot's namespace has handled all frames sent before. Opens no connection on the host. */
async function settleInSlot(guest: TapGuest): Promise<void> {
  const payload = frames.tcpSyn(BLOCKED_ADDRESS, 999, 80);
  await guest.ask(
    frames.ipv4Frame({ destination: BLOCKED_ADDRESS, protocol: 6, payload }),
    (frame) => (frames.readIpv4(frame)?.source === BLOCKED_ADDRESS ? true : undefined),
  );
}

/** Fills the sandbox's share with connections that its namespace knows to be closed and the host does not. */
async function hideOpenConnections(guest: TapGuest): Promise<void> {
  for (let n = 0; n < LIMIT; n += 1) await openAndReset(guest, 10_000 + n, 1);
  await settleInSlot(guest);
}

async function openMore(guest: TapGuest): Promise<void> {
  for (let n = 0; n < LIMIT; n += 1) sendSegment(guest, segment(11_000 + n, 1, syn));
  await settleInSlot(guest);
}

test('connections whose end the host does not see count against their sandbox', async () => {
  await network.slots.call('open', network.dataDir, options);
  const [slot, other] = [await network.slots.call('take'), await network.slots.call('take')];
  const [attacker, neighbour] = [await startGuest(slot), await startGuest(other)];
  await hideOpenConnections(attacker);
  const established = async () =>
    (await entriesOf(slot)).filter((line) => line.includes('ESTABLISHED'));
  await expect.poll(established).toHaveLength(LIMIT);
  await openMore(attacker);
  await neighbour.settle();
  expect(await entriesOf(slot)).toHaveLength(LIMIT);
});

test('connections whose end the host sees make room for others', async () => {
  await network.slots.call('open', network.dataDir, options);
  const guest = await startGuest(await network.slots.call('take'));
  for (let n = 0; n < 3 * LIMIT; n += 1) await openAndReset(guest, 10_000 + n, 64);
});

test('the connections of a running VM still count after a restart', async () => {
  const crashed = await network.startSlots();
  await crashed.call('open', network.dataDir, options);
  const slot = await crashed.call('take');
  const attacker = await startGuest(slot);
  await hideOpenConnections(attacker);
  await crashed.close();

  await network.slots.call('open', network.dataDir, { ...options, keep: [slot.index] });
  await network.slots.call('adopt', slot.index);
  await openMore(attacker);
  expect(await entriesOf(slot)).toHaveLength(LIMIT);
  const neighbour = await startGuest(await network.slots.call('take'));
  await neighbour.settle();
});

test('DNS queries leave few entries, and for seconds only', async () => {
  await network.slots.call('open', network.dataDir, options);
  const [slot, other] = [await network.slots.call('take'), await network.slots.call('take')];
  const [flooder, neighbour] = [await startGuest(slot), await startGuest(other)];
  const questions = [{ type: 'A', name: 'absent.example' }] as const;
  const message = encode({ type: 'query', id: 1, flags: 0x100, questions: [...questions] });
  for (let port = 12_000; port < 12_000 + 3 * LIMIT; port += 1) {
    const payload = frames.udp(port, 53, message);
    const query = frames.ipv4Frame({ destination: GUEST_LINK.gateway, payload });
    flooder.send(query);
    flooder.send(query);
  }
  await settleInSlot(flooder);
  await neighbour.settle();
  const entries = await entriesOf(slot);
  expect(entries.length).toBeGreaterThan(0);
  expect(entries.length).toBeLessThanOrEqual(LIMIT);
  const seconds = entries.map((line) => Number(/^udp +17 (\d+) /.exec(line)?.[1]));
  expect(Math.max(...seconds)).toBeLessThanOrEqual(10);
});
