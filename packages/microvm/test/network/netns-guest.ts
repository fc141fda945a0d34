import { randomBytes } from 'node:crypto';
import { GUEST_LINK } from '@svc/contract';
import { runProgram } from '@svc/service-kit/process';
import type { NetworkSlot } from '../../src/network/slots/network-slot.ts';
import { NetnsProcess } from './netns-process.ts';
import type { Peer } from './peer.ts';
import { runInNetns } from './run-in-netns.ts';
import { openTapPort } from './tap-port.ts';

/** A namespace that plays the guest behind a slot's tap device, and a peer in it. */
export interface NetnsGuest {
  readonly netns: string;
  readonly peer: NetnsProcess<Peer>;
  close(): Promise<void>;
}

/** Connects a new namespace to the slot's tap device. */
export async function startNetnsGuest(slot: NetworkSlot): Promise<NetnsGuest> {
  const netns = `svctest-${randomBytes(4).toString('hex')}-guest`;
  const { guest, guestMac, gateway, prefixLength } = GUEST_LINK;
  await runProgram('ip', ['netns', 'add', netns]);
  await runInNetns(
    netns,
    'ip',
    ['-batch', '-'],
    `link set lo up
tuntap add dev eth0 mode tap
link set eth0 address ${guestMac} up
addr add ${guest}/${prefixLength} dev eth0
route add default via ${gateway}
`,
  );
  const [near, far] = await Promise.all([
    openTapPort({ netns, tap: 'eth0', uid: 0 }),
    openTapPort(slot),
  ]);
  near.socket.pipe(far.socket);
  far.socket.pipe(near.socket);
  const peer = await NetnsProcess.start<Peer>(netns, new URL('./peer.ts', import.meta.url));
  let closed = false;
  return {
    netns,
    peer,
    async close() {
      if (closed) return;
      closed = true;
      await peer.close();
      await Promise.all([near.close(), far.close()]);
      await runProgram('ip', ['netns', 'del', netns]);
    },
  };
}
