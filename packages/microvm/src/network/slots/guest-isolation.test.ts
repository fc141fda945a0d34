import { GUEST_LINK } from '@svc/contract';
import { insideEdges, outsideEdges } from '@svc/service-kit/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as frames from '../../../test/network/frames.ts';
import { runInNetns } from '../../../test/network/run-in-netns.ts';
import type { TapGuest } from '../../../test/network/tap-guest.ts';
import { HOST_ADDRESS } from '../../../test/network/test-addresses.ts';
import { openTestNetwork, type TestNetwork } from '../../../test/network/test-network.ts';
import { slotAddresses } from '../addresses.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkSlot } from './network-slot.ts';

const { guest: GUEST, gateway: GATEWAY, guestMac: MAC, gatewayMac: GATEWAY_MAC } = GUEST_LINK;
const PORT = 9;

let network: TestNetwork;
let instance: Instance;
let slot: NetworkSlot;
let otherSlot: NetworkSlot;
let guest: TapGuest;
let otherGuest: TapGuest;

/** A valid datagram from the guest, apart from the fields in `change`. */
function datagram(
  destination: string,
  change: Partial<frames.Ipv4Frame> = {},
  port = PORT,
): Buffer {
  return frames.ipv4Frame({ destination, payload: frames.udp(5000, port), ...change });
}

describe.each([
  ['both packet filters', true],
  ['the packet filter of the slot alone', false],
])('with %s', (_name, withHostRules) => {
  beforeAll(async () => {
    network = await openTestNetwork();
    instance = await network.slots.call('open', network.dataDir, {});
    [slot, otherSlot] = [await network.slots.call('take'), await network.slots.call('take')];
    [guest, otherGuest] = [
      await network.startTapGuest(slot),
      await network.startTapGuest(otherSlot),
    ];
    if (!withHostRules) {
      await runInNetns(network.host, 'nft', ['delete', 'table', 'inet', instance.name]);
      await network.routeToSlots(instance);
    }
  });

  afterAll(async () => {
    await network?.slots.call('close', []);
    await network?.close();
  });

  describe('destinations', () => {
    test('no protocol reaches the first or last address of a special range', async () => {
      const edges = insideEdges();
      for (const address of edges) {
        guest.send(datagram(address));
        guest.send(
          frames.ipv4Frame({
            destination: address,
            protocol: 6,
            payload: frames.tcpSyn(address, 5001, 80),
          }),
        );
        guest.send(
          frames.ipv4Frame({ destination: address, protocol: 1, payload: frames.ping(1) }),
        );
      }
      await guest.settle();
      const seen = await network.seen();
      expect(edges.filter((address) => seen.has(address))).toEqual([]);
    });

    test('the public addresses next to every special range are reachable', async () => {
      const edges = outsideEdges();
      for (const address of edges) guest.send(datagram(address));
      await guest.settle();
      const seen = await network.seen();
      expect(edges.filter((address) => !seen.has(address))).toEqual([]);
    });

    test('no service of the host is reachable, on any address', async () => {
      const { hostAddress } = slotAddresses(instance.index, slot.index);
      await network.services.call('listenUdp', PORT, '0.0.0.0');
      // Only the host's filter can block the host's public addresses: a slot does not know them.
      const own = withHostRules ? [HOST_ADDRESS] : [];
      for (const address of [...own, '127.0.0.1', instance.serviceAddress, hostAddress, GATEWAY]) {
        guest.send(datagram(address));
      }
      await guest.settle();
      expect(await network.services.call('arrivals')).toEqual([]);
    });

    test('no other sandbox is reachable', async () => {
      const other = slotAddresses(instance.index, otherSlot.index);
      const before = otherGuest.frames.length;
      for (const destination of [other.slotAddress, other.hostAddress]) {
        guest.send(datagram(destination));
        for (const port of Object.values(GUEST_LINK.guestPorts)) {
          const payload = frames.tcpSyn(destination, 5002, port);
          guest.send(frames.ipv4Frame({ destination, protocol: 6, payload }));
        }
      }
      await guest.settle();
      await otherGuest.settle();
      // It received only echoes of its own marker, which it may have sent more than once.
      const sources = otherGuest.frames
        .slice(before)
        .map((frame) => frames.readIpv4(frame)?.source);
      expect(new Set(sources)).toEqual(new Set(['8.8.8.8']));
    });

    test('the gateway serves only DNS', async () => {
      const before = guest.frames.length;
      for (const port of [22, 67, 80, 123, 443, 1053, 7000, 7100, 8443]) {
        guest.send(datagram(GATEWAY, {}, port));
        const payload = frames.tcpSyn(GATEWAY, 22, port);
        guest.send(frames.ipv4Frame({ destination: GATEWAY, protocol: 6, payload }));
      }
      guest.send(frames.ipv4Frame({ destination: GATEWAY, protocol: 1, payload: frames.ping(2) }));
      await guest.settle();
      const sources = guest.frames.slice(before).map((frame) => frames.readIpv4(frame)?.source);
      expect(sources).not.toContain(GATEWAY);
    });
  });

  describe('forged and malformed frames', () => {
    const attacks: [string, string, (target: string) => Buffer | Buffer[]][] = [
      ['another source address', '8.8.4.1', (to) => datagram(to, { source: '172.30.0.3' })],
      ['a public source address', '8.8.4.2', (to) => datagram(to, { source: '93.184.216.99' })],
      ['the gateway as source', '8.8.4.3', (to) => datagram(to, { source: GATEWAY })],
      ['another source MAC', '8.8.4.4', (to) => datagram(to, { sourceMac: '02:00:00:00:00:03' })],
      ['the gateway’s MAC', '8.8.4.5', (to) => datagram(to, { sourceMac: GATEWAY_MAC })],
      [
        'a datagram in two fragments',
        '8.8.4.6',
        (to) => [
          datagram(to, {
            fragment: 0x2000,
            payload: frames.udp(5000, PORT, Buffer.alloc(16)).subarray(0, 8),
          }),
          datagram(to, { fragment: 0x0001, payload: Buffer.alloc(16) }),
        ],
      ],
      [
        'a source route',
        '8.8.4.8',
        (to) => datagram(to, { options: Buffer.from([131, 7, 4, 10, 1, 2, 3, 0]) }),
      ],
      ['IPv6 inside IPv4', '8.8.4.9', (to) => datagram(to, { protocol: 41 })],
      ['GRE', '8.8.4.10', (to) => datagram(to, { protocol: 47 })],
      ['SCTP', '8.8.4.11', (to) => datagram(to, { protocol: 132 })],
      [
        'an ICMP redirect',
        '8.8.4.12',
        (to) => datagram(to, { protocol: 1, payload: Buffer.from([5, 1, 250, 254, 0, 0, 0, 0]) }),
      ],
      ['a VLAN tag', '8.8.4.13', (to) => tagged(datagram(to), 5)],
      ['an empty VLAN tag', '8.8.4.14', (to) => tagged(datagram(to), 0)],
    ];

    function tagged(frame: Buffer, vlan: number): Buffer {
      const tag = Buffer.from([0x81, 0x00, vlan >> 8, vlan & 0xff]);
      return Buffer.concat([frame.subarray(0, 12), tag, frame.subarray(12)]);
    }

    test.each(attacks)('%s is dropped', async (_name, target, attack) => {
      for (const frame of [attack(target)].flat()) guest.send(frame);
      await guest.settle();
      expect(await network.seen()).not.toContain(target);
    });

    test('the same datagram without the forgery passes', async () => {
      guest.send(datagram('8.8.4.100'));
      await guest.settle();
      expect(await network.seen()).toContain('8.8.4.100');
    });

    test('the gateway answers ARP and ignores ARP claims', async () => {
      const ask = frames.ethernetFrame(0x0806, frames.arp(1, MAC, GUEST, GATEWAY), {
        destinationMac: 'ff:ff:ff:ff:ff:ff',
      });
      const answer = await guest.ask(ask, (frame) =>
        frame.readUInt16BE(12) === 0x0806 && frame[21] === 2 ? frame : undefined,
      );
      expect(answer.subarray(6, 12).toString('hex')).toBe(GATEWAY_MAC.replaceAll(':', ''));
      const evil = '02:00:00:00:00:66';
      for (const sender of [GUEST, GATEWAY, slot.address]) {
        guest.send(frames.ethernetFrame(0x0806, frames.arp(2, evil, sender, GATEWAY)));
        guest.send(
          frames.ethernetFrame(0x0806, frames.arp(1, evil, sender, GATEWAY), { sourceMac: evil }),
        );
      }
      await guest.settle();
      const neighbours = await runInNetns(slot.netns, 'ip', ['neigh', 'show', 'dev', slot.tap]);
      expect(neighbours.trim()).toBe(`${GUEST} lladdr ${MAC} PERMANENT`);
    });

    test('IPv6 is disabled in a slot and on the host’s end of its link', async () => {
      const solicitation = Buffer.alloc(48);
      solicitation[0] = 0x60;
      solicitation.writeUInt16BE(8, 4);
      solicitation[6] = 58;
      solicitation[7] = 255;
      solicitation[8] = 0xfe;
      solicitation[9] = 0x80;
      solicitation[23] = 2;
      solicitation[24] = 0xff;
      solicitation[25] = 0x02;
      solicitation[39] = 2;
      solicitation[40] = 133;
      const before = guest.frames.length;
      guest.send(
        frames.ethernetFrame(0x86dd, solicitation, { destinationMac: '33:33:00:00:00:02' }),
      );
      await guest.settle();
      const types = guest.frames.slice(before).map((frame) => frame.readUInt16BE(12));
      expect(types).not.toContain(0x86dd);
      expect(await runInNetns(slot.netns, 'ip', ['-6', 'addr'])).toBe('');
      expect(await runInNetns(network.host, 'ip', ['-6', 'addr', 'show', 'dev', slot.netns])).toBe(
        '',
      );
    });
  });
});
