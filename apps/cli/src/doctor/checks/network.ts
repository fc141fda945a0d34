import { readFile } from 'node:fs/promises';
import { diagnoseHost } from '@svc/microvm';
import { runProgram } from '@svc/service-kit/process';
import { type Check, type Finding, fail, ok, warn } from '../findings.ts';

/** The host features that the network of sandboxes needs: network namespaces, packet filters and forwarding. */
export const networkCheck: Check = {
  name: 'network',
  run: async () => [await namespaces(), ...(await packetFilters()), await forwarding()],
};

async function namespaces(): Promise<Finding> {
  try {
    await runProgram('unshare', ['--net', 'true']);
    return ok('namespaces', 'network namespaces work');
  } catch {
    return fail(
      'namespaces',
      'cannot create a network namespace',
      'run as root, outside a restricted container',
    );
  }
}

/** The rules of the host that block the network of sandboxes, with the fix for each. */
async function packetFilters(): Promise<Finding[]> {
  const found = await diagnoseHost();
  if (found.length === 0) return [ok('packet filter', 'nothing blocks sandboxes')];
  const mend = 'do that, then run `svc doctor` again';
  return found.map(({ severity, message }) =>
    severity === 'problem'
      ? fail('packet filter', message, mend)
      : warn('packet filter', message, mend),
  );
}

async function forwarding(): Promise<Finding> {
  const value = await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8').catch(() => '');
  return value.trim() === '1'
    ? ok('ip_forward', 'on')
    : warn('ip_forward', 'off: `svc up` turns it on', 'sysctl -w net.ipv4.ip_forward=1');
}
