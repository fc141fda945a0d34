import { access } from 'node:fs/promises';
import type { Cgroups } from './cgroups.ts';
import { CgroupsV1 } from './v1.ts';
import { CgroupsV2 } from './v2.ts';

/** Opens the control groups of this machine. The kind is `none` when they are missing or not writable. */
export async function openCgroups(name: string, warn: (message: string) => void): Promise<Cgroups> {
  const attempts = [() => CgroupsV2.open(name), () => CgroupsV1.open(name)];
  if (await exists('/sys/fs/cgroup/memory')) attempts.reverse();
  const reasons: string[] = [];
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error));
    }
  }
  warn(`sandboxes run without processor and memory limits: ${reasons.join('; ')}`);
  return noCgroups;
}

const noCgroups: Cgroups = {
  kind: 'none',
  add: async () => undefined,
  assign: async () => undefined,
  balance: async () => undefined,
  favour: async () => undefined,
  remove: async () => undefined,
  close: async () => undefined,
};

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
