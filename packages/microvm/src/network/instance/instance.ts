import { instanceBlock, serviceAddress } from '../addresses.ts';

/** One running service of this machine, as the kernel's shared name spaces see it. */
export interface Instance {
  /** 0 to 31, unique on this machine, the same for a data directory as long as it is claimed. */
  readonly index: number;
  readonly dataDir: string;
  /** Its private directory for sockets and VM state that must not outlive a reboot. */
  readonly runDir: string;
  /** Name of its nftables table; with `-<slot>`, of a namespace and of its interface. */
  readonly name: string;
  /** Its addresses, CIDR. */
  readonly block: string;
  /** Where it serves its own guests: DNS, and what it offers on gateway ports. */
  readonly serviceAddress: string;
}

export function describeInstance(root: string, index: number, dataDir: string): Instance {
  return {
    index,
    dataDir,
    runDir: `${root}/${index}`,
    name: `svc${index}`,
    block: instanceBlock(index),
    serviceAddress: serviceAddress(index),
  };
}
