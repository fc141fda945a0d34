import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '../command.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkSlot } from '../slots/network-slot.ts';
import { removeSlots } from '../slots/remove-slots.ts';
import { DNS_SERVER, ECHO_PORT, HOST_ADDRESS, WORLD_ADDRESS } from './lab-addresses.ts';
import { type Methods, NetnsProcess } from './netns-process.ts';
import type { Peer } from './peer.ts';
import { runIn } from './run-in.ts';
import type { SlotsMethods } from './slots-process.ts';
import { type StackGuest, startStackGuest } from './stack-guest.ts';
import { TapGuest } from './tap-guest.ts';

/**
 * A test host with the network layer on it, and a test internet that owns every address there is.
 * Both are namespaces without any link to the real network.
 */
export interface Lab {
  readonly host: string;
  readonly world: string;
  readonly dataDir: string;
  readonly slots: NetnsProcess<SlotsMethods>;
  readonly internet: NetnsProcess<Peer>;
  readonly services: NetnsProcess<Peer>;
  /** Destinations of all packets that ever reached the test internet. */
  seen(): Promise<Set<string>>;
  /** Starts the network layer's process, in place of one that ended. */
  startSlots(): Promise<NetnsProcess<SlotsMethods>>;
  /** Starts an ordinary process inside any namespace. */
  startPeer(netns: string): Promise<NetnsProcess<Peer>>;
  startStackGuest(slot: NetworkSlot): Promise<StackGuest>;
  startTapGuest(slot: NetworkSlot): Promise<TapGuest>;
  /** Makes the test internet send packets for an instance's slots to the host, as a LAN might. */
  routeToSlots(instance: Instance): Promise<void>;
  /** Ends everything that was started here and takes it away. */
  close(): Promise<void>;
}

/** Builds a test host and its internet; what was built is taken away when a part fails. */
export async function openLab(): Promise<Lab> {
  const name = `lab-${randomBytes(4).toString('hex')}`;
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
    await removeSlots([host, world]);
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
      startStackGuest: async (slot) => own(await startStackGuest(slot)),
      startTapGuest: async (slot) => own(await TapGuest.start(slot)),
      seen: () => readSeen(world),
      async routeToSlots({ block }) {
        const route = ['route', 'add', block, 'via', HOST_ADDRESS, 'table', 'local'];
        await runIn(world, 'ip', route);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function buildNetwork(host: string, world: string): Promise<void> {
  await run('ip', ['-batch', '-'], `netns add ${host}\nnetns add ${world}\n`);
  await runIn(
    host,
    'ip',
    ['-batch', '-'],
    `link set lo up
link add eth0 type veth peer name uplink netns ${world}
addr add ${HOST_ADDRESS}/24 dev eth0
link set eth0 up
`,
  );
  await runIn(
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
  await runIn(world, 'nft', ['-f', '-'], SEEN_TABLE);
  // A host that would hand everything on: what does not arrive was stopped by the filters.
  await runIn(host, 'ip', ['route', 'add', 'default', 'via', WORLD_ADDRESS]);
}

const SEEN_TABLE = `table ip lab {
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
  const text = await runIn(world, 'nft', ['-j', 'list', 'set', 'ip', 'lab', 'seen']);
  const listing = JSON.parse(text) as SetListing;
  return new Set(listing.nftables.flatMap((entry) => entry.set?.elem ?? []));
}
