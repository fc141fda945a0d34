import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeGroup, removeGroup } from './group-files.ts';

const ATTEMPTS = 20;
const PAUSE_MS = 50;

/**
 * The group of the service's own process in the older hierarchy of the processor. Without one, the kernel may group
 * processes by session (sched_autogroup_enabled in proc(5)): the service would have the weight of one process together with
 * everything else in its terminal.
 */
export class ServiceGroup {
  readonly #root: string;
  readonly #path: string;
  readonly #shares: number;

  /** `root`: the directory of the hierarchy. */
  constructor(root: string, name: string, shares: number) {
    this.#root = root;
    this.#path = join(root, name);
    this.#shares = shares;
  }

  /** Moves a process here if it is in no group. Its children follow, but for those that it already has. */
  async enter(pid: number): Promise<void> {
    const groups = await readFile(`/proc/${pid}/cgroup`, 'utf8');
    // Lines such as `4:cpu,cpuacct:/`.
    if (!/^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:\/$/m.test(groups)) return;
    await makeGroup(this.#path, { 'cpu.shares': this.#shares });
    await writeFile(join(this.#path, 'cgroup.procs'), String(pid));
  }

  /** Moves every process back, and removes the group. Idempotent. */
  async remove(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const left = await this.#processes();
      if (left.length === 0 || attempt > ATTEMPTS) break;
      for (const pid of left) await moveTo(this.#root, pid);
      await sleep(left.length === 1 ? 0 : PAUSE_MS);
    }
    await removeGroup(this.#path);
  }

  async #processes(): Promise<string[]> {
    try {
      const text = await readFile(join(this.#path, 'cgroup.procs'), 'utf8');
      return text.split('\n').filter(Boolean);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }
}

/** Does nothing if the process has ended. */
async function moveTo(group: string, pid: string): Promise<void> {
  try {
    await writeFile(join(group, 'cgroup.procs'), pid);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
