import { ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/**
 * The address to listen on for `host`, a name or an address. Of the addresses of a name, it is one that clients on this
 * machine try: they leave out `::1` where no network interface has an IPv6 address, while a server that listens on the name
 * itself would not.
 * @throws Error with the code of getaddrinfo, if the name has no address
 */
export async function listenAddress(host: string): Promise<string> {
  if (isIP(host) !== 0) return host;
  const { address } = await lookup(host, { hints: ADDRCONFIG });
  return address;
}
