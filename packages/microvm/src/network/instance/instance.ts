import { instanceBlock, serviceAddress } from '../addresses.ts';

/** One service on this machine, and the names and addresses reserved for it. */
export interface Instance {
  /** 0 to 31, unique on this machine. A data directory keeps its index until it releases it. */
  readonly index: number;
  readonly dataDir: string;
  /** Directory for sockets and VM state that must not survive a reboot. */
  readonly runDir: string;
  /** Name of the nftables table, and start of the name of the other one. With `-<slot>` appended, name of a namespace and its interface. */
  readonly name: string;
  /** Address block, in CIDR notation. */
  readonly block: string;
  /** The address at which it serves its guests: DNS and the gateway ports. */
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
