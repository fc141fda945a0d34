import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';
import type { Instance } from '../../src/network/instance/instance.ts';
import type { NetworkSlot } from '../../src/network/slots/network-slot.ts';
import { removeSlots } from '../../src/network/slots/remove-slots.ts';
import { type NetnsGuest, startNetnsGuest } from './netns-guest.ts';
import { type Methods, NetnsProcess } from './netns-process.ts';
import type { Peer } from './peer.ts';
import { runInNetns } from './run-in-netns.ts';
import type { SlotsMethods } from './slots-process.ts';
import { TapGuest } from './tap-guest.ts';
import { DNS_SERVER, ECHO_PORT, HOST_ADDRESS, WORLD_ADDRESS } from './test-addresses.ts';

/**
 * A test host that runs the network layer, and a test internet that owns every address. Both are namespaces without a
 * link to the real network.
 */
export interface TestNetwork {
  readonly host: string;
  readonly world: string;
  readonly dataDir: string;
  readonly slots: NetnsProcess<SlotsMethods>;
  readonly internet: NetnsProcess<Peer>;
  readonly services: NetnsProcess<Peer>;
  /** Destination addresses of all packets that have reached the test internet. */
  seen(): Promise<Set<string>>;
  /** Starts another process of the network layer, after the first one has ended. */
  startSlots(): Promise<NetnsProcess<SlotsMethods>>;
  /** Starts a peer in a namespace. */
  startPeer(netns: string): Promise<NetnsProcess<Peer>>;
  startNetnsGuest(slot: NetworkSlot): Promise<NetnsGuest>;
  startTapGuest(slot: NetworkSlot): Promise<TapGuest>;
  /** Makes the test internet route packets for an instance's slots to the host, as a LAN might. */
  routeToSlots(instance: Instance): Promise<void>;
  /** Ends and removes everything that was started here. */
  close(): Promise<void>;
}

/** Builds a test host and a test internet. A failure removes all parts again. */
export async function openTestNetwork(): Promise<TestNetwork> {
  const name = `svctest-${randomBytes(4).toString('hex')}`;
  const host = `${name}-host`;
  const world = `${name}-world`;
  const dataDir = await mkdtemp(join(tmpdir(), `${name}-`));
  const resources: { close(): Promise<void> }[] = [];
  const own = <T extends { close(): Promise<void> }>(resource: T): T => {
    resources.push(resource);
    return resource;
  };
  const start = async <T extends Methods>(netns: string, script: string) =>
    own(await NetnsProcess.start<T>(netns, new URL(script, import.meta.url)));
  const close = async () => {
    await Promise.all(resources.map((resource) => resource.close()));
    await removeSlots([{ netns: host }, { netns: world }]);
    await rm(dataDir, { recursive: true, force: true });
  };
  try {
    await buildNetwork(host, world);
    const [internet, services, slots] = await Promise.all([
      start<Peer>(world, './peer.ts'),
      start<Peer>(host, './peer.ts'),
      start<SlotsMethods>(host, './slots-process.ts'),
    ]);
    await internet.call('listenTcp', 80);
    await internet.call('listenUdp', ECHO_PORT, DNS_SERVER);
    return {
      ...{ host, world, dataDir, internet, services, slots, close },
      startSlots: () => start<SlotsMethods>(host, './slots-process.ts'),
      startPeer: (netns) => start<Peer>(netns, './peer.ts'),
      startNetnsGuest: async (slot) => own(await startNetnsGuest(slot)),
      startTapGuest: async (slot) => own(await TapGuest.start(slot)),
      seen: () => readSeen(world),
      async routeToSlots({ block }) {
        const route = ['route', 'add', block, 'via', HOST_ADDRESS, 'table', 'local'];
        await runInNetns(world, 'ip', route);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function buildNetwork(host: string, world: string): Promise<void> {
  await runProgram('ip', ['-batch', '-'], `netns add ${host}\nnetns add ${world}\n`);
  await runInNetns(
    host,
    'ip',
    ['-batch', '-'],
    `link set lo up
link add eth0 type veth peer name uplink netns ${world}
addr add ${HOST_ADDRESS}/24 dev eth0
link set eth0 up
`,
  );
  await runInNetns(
    world,
    'ip',
    ['-batch', '-'],
    `link set lo up
addr add ${WORLD_ADDRESS}/24 dev uplink
link set uplink up
route add 93.184.215.0/24 dev uplink table local
route add local default dev lo table local
`,
  );
  await runInNetns(world, 'nft', ['-f', '-'], SEEN_TABLE);
  // The host forwards everything, so only the filters can stop a packet.
  await runInNetns(host, 'ip', ['route', 'add', 'default', 'via', WORLD_ADDRESS]);
}

const SEEN_TABLE = `table ip test {
  set seen { type ipv4_addr; size 65535; flags dynamic; }
  chain prerouting {
    type filter hook prerouting priority raw; policy accept;
    iifname "uplink" add @seen { ip daddr }
  }
}
`;

interface SetListing {
  readonly nftables: readonly { readonly set?: { readonly elem?: readonly string[] } }[];
}

async function readSeen(world: string): Promise<Set<string>> {
  const text = await runInNetns(world, 'nft', ['-j', 'list', 'set', 'ip', 'test', 'seen']);
  const listing = JSON.parse(text) as SetListing;
  return new Set(listing.nftables.flatMap((entry) => entry.set?.elem ?? []));
}
