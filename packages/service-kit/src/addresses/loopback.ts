import ipaddr from 'ipaddr.js';

/** Whether only programs of this machine can connect to an address. */
export function isLoopback(address: string): boolean {
  return ipaddr.process(address).range() === 'loopback';
}
