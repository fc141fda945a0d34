import { randomBytes } from 'node:crypto';
import { GUEST_LINK } from '@svc/contract';
import { run } from '../command.ts';
import type { NetworkSlot } from '../slots/network-slot.ts';
import { NetnsProcess } from './netns-process.ts';
import type { Peer } from './peer.ts';
import { runIn } from './run-in.ts';
import { openTapPort } from './tap-port.ts';

/** A guest with a kernel's own network stack behind a slot's tap, and a process that uses it. */
export interface StackGuest {
  readonly netns: string;
  readonly peer: NetnsProcess<Peer>;
  close(): Promise<void>;
}

/** Wires a namespace that plays the guest to the slot's tap. */
export async function startStackGuest(slot: NetworkSlot): Promise<StackGuest> {
  const netns = `lab-${randomBytes(4).toString('hex')}-guest`;
  const { guest, guestMac, gateway, prefixLength } = GUEST_LINK;
  await run('ip', ['netns', 'add', netns]);
  await runIn(
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
      await run('ip', ['netns', 'del', netns]);
    },
  };
}
