import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { runProgram } from '@svc/service-kit/process';
import type { Instance } from '../instance/instance.ts';
import type { NetworkPolicy } from '../network-policy.ts';
import { hostRules, removeHostRules } from './host-rules.ts';

const IP_FORWARD = '/proc/sys/net/ipv4/ip_forward';
const TUN = '/dev/net/tun';

/**
 * Sets up the host's side of an instance's network: first the packet filter, then the service address, an `unreachable`
 * route, which keeps packets for missing slots on this machine, and forwarding.
 *
 * @returns the machine-wide changes that {@link tearDownHost} does not undo, one sentence each
 */
export async function setUpHost(instance: Instance, policy: NetworkPolicy): Promise<string[]> {
  await runProgram('nft', ['-f', '-'], hostRules(instance, policy));
  await runProgram(
    'ip',
    ['-batch', '-'],
    `addr replace ${instance.serviceAddress}/32 dev lo\nroute replace unreachable ${instance.block}\n`,
  );
  return [...(await enableForwarding()), ...(await openTunDevice())];
}

/** Removes the host's side of an instance's network. Missing parts are not an error. */
export async function tearDownHost(instance: Instance): Promise<void> {
  await runProgram(
    'ip',
    ['-batch', '-'],
    // `replace` before `del`, because `del` fails for a missing entry.
    `addr replace ${instance.serviceAddress}/32 dev lo
addr del ${instance.serviceAddress}/32 dev lo
route replace unreachable ${instance.block}
route del unreachable ${instance.block}
`,
  );
  await runProgram('nft', ['-f', '-'], removeHostRules(instance));
}

async function enableForwarding(): Promise<string[]> {
  if ((await readFile(IP_FORWARD, 'utf8')).trim() === '1') return [];
  await writeFile(IP_FORWARD, '1');
  return ['IPv4 forwarding (net.ipv4.ip_forward) was off and is now on'];
}

/** Each VM process opens its tap device itself as an unprivileged user. The owner of the tap device protects it. */
async function openTunDevice(): Promise<string[]> {
  const mode = (await stat(TUN)).mode & 0o777;
  if ((mode & 0o006) === 0o006) return [];
  await chmod(TUN, 0o666);
  return [`${TUN} had mode ${mode.toString(8)} and now has the usual 666`];
}
