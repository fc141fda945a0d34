import { readFile } from 'node:fs/promises';
import { type Check, fail, ok, warn } from '../finding.ts';
import { runProgram } from '../run-program.ts';

/** Network namespaces, packet filter and forwarding, which the sandboxes' network is made of. */
export const networkCheck: Check = {
  name: 'network',
  run: async () => [await namespaces(), await packetFilter(), await forwarding()],
};

async function namespaces() {
  const works = await runProgram('unshare', ['--net', 'true']);
  return works === undefined
    ? fail(
        'namespaces',
        'a network namespace cannot be made',
        'run as root, outside a restricted container',
      )
    : ok('namespaces', 'network namespaces work');
}

async function packetFilter() {
  const works = await runProgram('nft', ['list', 'tables']);
  return works === undefined
    ? fail('nftables', 'nft does not work', 'install nftables and load the nf_tables kernel module')
    : ok('nftables', 'works');
}

async function forwarding() {
  const value = await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8').catch(() => '');
  return value.trim() === '1'
    ? ok('ip_forward', 'on')
    : warn('ip_forward', 'off: `svc up` turns it on', 'sysctl -w net.ipv4.ip_forward=1');
}
