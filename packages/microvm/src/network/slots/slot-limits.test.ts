import { encode } from 'dns-packet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GUEST_LINK } from '../guest-link.ts';
import * as frames from '../testing/frames.ts';
import { type Lab, openLab } from '../testing/lab.ts';
import { DNS_SERVER, ECHO_PORT } from '../testing/lab-addresses.ts';
import { runIn } from '../testing/run-in.ts';
import type { TapGuest } from '../testing/tap-guest.ts';
import type { NetworkSlot } from './network-slot.ts';

const CONNECTIONS = 60;
const DNS_BURST = 10;

let lab: Lab;
let slots: NetworkSlot[];
let flooder: TapGuest;
let neighbour: TapGuest;

beforeAll(async () => {
  lab = await openLab();
  await lab.internet.call('serveDns', DNS_SERVER, {});
  const limits = { connections: CONNECTIONS, connectionRate: 10, connectionBurst: 100 };
  await lab.slots.call('open', lab.dataDir, {
    dnsServer: DNS_SERVER,
    limits: { ...limits, dnsRate: 1, dnsBurst: DNS_BURST },
  });
  slots = [await lab.slots.call('take'), await lab.slots.call('take')];
  const [first, second] = slots;
  if (first === undefined || second === undefined) throw new Error('two slots were taken');
  [flooder, neighbour] = [await lab.startTapGuest(first), await lab.startTapGuest(second)];
});

afterAll(async () => {
  await lab?.slots.call('close', []);
  await lab?.close();
});

function answersFrom(guest: TapGuest, source: string): number {
  return guest.frames.filter((frame) => frames.readIpv4(frame)?.source === source).length;
}

test('a flood of DNS queries is refused beyond its rate, and the neighbour’s is answered', async () => {
  const started = performance.now();
  const query = (id: number) =>
    encode({ type: 'query', id, flags: 0x100, questions: [{ type: 'A', name: `n${id}.example` }] });
  for (let id = 1; id <= 150; id += 1) {
    const payload = frames.udp(6000, 53, query(id));
    flooder.send(frames.ipv4Frame({ destination: GUEST_LINK.gateway, payload }));
  }
  const mine = frames.udp(6000, 53, query(5000));
  const rcode = await neighbour.ask(
    frames.ipv4Frame({ destination: GUEST_LINK.gateway, payload: mine }),
    (frame) => {
      const packet = frames.readIpv4(frame);
      return packet?.source === GUEST_LINK.gateway ? (packet.payload[11] ?? 0) & 0x0f : undefined;
    },
  );
  expect(rcode).toBe(3);
  await flooder.settle();
  const forwarded = (await lab.internet.call('arrivals')).filter((text) => /dns A n/.test(text));
  const seconds = (performance.now() - started) / 1000;
  expect(forwarded.length).toBeGreaterThanOrEqual(DNS_BURST);
  expect(forwarded.length).toBeLessThanOrEqual(DNS_BURST + seconds + 2);
});

test('a flood of new connections fills only the sandbox’s own share', async () => {
  for (let port = 10_000; port < 10_500; port += 1) {
    const payload = frames.udp(port, ECHO_PORT);
    flooder.send(frames.ipv4Frame({ destination: DNS_SERVER, payload }));
  }
  await neighbour.settle();
  const [first] = slots;
  const count = await runIn(first?.netns ?? '', 'cat', [
    '/proc/sys/net/netfilter/nf_conntrack_count',
  ]);
  // What it resolved before is not counted against it.
  expect(Number(count)).toBeLessThanOrEqual(CONNECTIONS + DNS_BURST);
  expect(answersFrom(flooder, DNS_SERVER)).toBeLessThanOrEqual(CONNECTIONS + 2);
  expect(answersFrom(flooder, DNS_SERVER)).toBeGreaterThan(0);
});
