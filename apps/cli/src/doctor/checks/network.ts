import { readFile } from 'node:fs/promises';
import { diagnoseHost } from '@svc/microvm';
import { type Check, type Finding, fail, ok, warn } from '../finding.ts';
import { runProgram } from '../run-program.ts';

/** Network namespaces, packet filter and forwarding, which the sandboxes' network is made of. */
export const networkCheck: Check = {
  name: 'network',
  run: async () => [await namespaces(), ...(await obstacles()), await forwarding()],
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

/** What stands in the way of the sandboxes' network, each with what to do about it. */
async function obstacles(): Promise<Finding[]> {
  const found = await diagnoseHost();
  if (found.length === 0) return [ok('packet filter', 'nothing stands in the way of sandboxes')];
  const mend = 'do that, then run `svc doctor` again';
  return found.map(({ severity, message }) =>
    severity === 'problem'
      ? fail('packet filter', message, mend)
      : warn('packet filter', message, mend),
  );
}

async function forwarding() {
  const value = await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8').catch(() => '');
  return value.trim() === '1'
    ? ok('ip_forward', 'on')
    : warn('ip_forward', 'off: `svc up` turns it on', 'sysctl -w net.ipv4.ip_forward=1');
}
