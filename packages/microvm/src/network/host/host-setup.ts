import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { run } from '../command.ts';
import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-options.ts';
import { hostRules } from './host-rules.ts';

const IP_FORWARD = '/proc/sys/net/ipv4/ip_forward';
const TUN = '/dev/net/tun';

/**
 * Makes the host's side of an instance's network: packet filter first, then its service address,
 * a route that keeps packets for slots that do not exist on this machine, and forwarding.
 *
 * @returns what it changed for the whole machine and does not change back, one sentence each.
 */
export async function setUpHost(instance: Instance, policy: NetworkPolicy): Promise<string[]> {
  await run('nft', ['-f', '-'], hostRules(instance, policy));
  await run(
    'ip',
    ['-batch', '-'],
    `addr replace ${instance.serviceAddress}/32 dev lo\nroute replace unreachable ${instance.block}\n`,
  );
  return [...(await enableForwarding()), ...(await openTunDevice())];
}

/** Takes the host's side away again; parts that are gone are no error. */
export async function tearDownHost(instance: Instance): Promise<void> {
  await run(
    'ip',
    ['-batch', '-'],
    // `replace` before `del`, so that both always have something to delete.
    `addr replace ${instance.serviceAddress}/32 dev lo
addr del ${instance.serviceAddress}/32 dev lo
route replace unreachable ${instance.block}
route del unreachable ${instance.block}
`,
  );
  await run(
    'nft',
    ['-f', '-'],
    `table inet ${instance.name} {}\ndelete table inet ${instance.name}\n`,
  );
}

async function enableForwarding(): Promise<string[]> {
  if ((await readFile(IP_FORWARD, 'utf8')).trim() === '1') return [];
  await writeFile(IP_FORWARD, '1');
  return ['IPv4 forwarding (net.ipv4.ip_forward) was off and is now on'];
}

/** Each VM opens its tap itself, as a user without rights; the tap's owner is what guards it. */
async function openTunDevice(): Promise<string[]> {
  const mode = (await stat(TUN)).mode & 0o777;
  if ((mode & 0o006) === 0o006) return [];
  await chmod(TUN, 0o666);
  return [`${TUN} had mode ${mode.toString(8)} and now has the usual 666`];
}
