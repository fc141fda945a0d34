import { exists } from '../../files.ts';
import { type Check, ok, warn } from '../finding.ts';

/** What bounds the CPU and memory of a VM. */
export const cgroupsCheck: Check = {
  name: 'cgroups',
  run: async () => {
    if (await exists('/sys/fs/cgroup/cgroup.controllers')) return ok('cgroups', 'version 2');
    const v1 = await Promise.all(
      ['cpu', 'memory'].map((name) => exists(`/sys/fs/cgroup/${name}/tasks`)),
    );
    if (v1.every(Boolean)) return ok('cgroups', 'version 1');
    return warn(
      'cgroups',
      'none: sandboxes are not held to their share of CPU',
      'mount cgroup version 2 at /sys/fs/cgroup',
    );
  },
};
