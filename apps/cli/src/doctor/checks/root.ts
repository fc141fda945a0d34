import { type Check, fail, ok } from '../finding.ts';

/** Network namespaces, cgroups and uids of the VMs need root. */
export const rootCheck: Check = {
  name: 'user',
  run: async () =>
    process.getuid?.() === 0
      ? ok('user', 'root')
      : fail('user', 'not root', 'run svc as root: it makes network namespaces and jails for VMs'),
};
