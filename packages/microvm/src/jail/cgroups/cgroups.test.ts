import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Cgroups } from './cgroups.ts';
import { openCgroups } from './open-cgroups.ts';

const MIB = 1024 * 1024;
const LIMITS = { cores: 1.25, memoryBytes: 512 * MIB, tasks: 50 };
const BUSY = ['sh', '-c', 'while :; do :; done'] as const;
let name: string;
let cgroups: Cgroups;
let processes: ChildProcess[];

beforeEach(async () => {
  name = `svc-test-${process.pid}-${Math.random().toString(36).slice(2)}`;
  cgroups = await open();
  processes = [];
});
afterEach(async () => {
  await Promise.all(processes.map(end));
  await cgroups.close();
  expect(await exists(root())).toBe(false);
});

async function open(): Promise<Cgroups> {
  const warnings: string[] = [];
  const opened = await openCgroups(name, (warning) => warnings.push(warning));
  expect(warnings).toEqual([]);
  return opened;
}

/** The group of the service, in the hierarchy of the processor. */
const root = (kind = cgroups.kind) => join('/sys/fs/cgroup', kind === 'v1' ? 'cpu' : '', name);
const groupOf = (owner: string, id = '') => join(root(), `owner-${owner}`, id);
const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
const read = async (path: string) => (await readFile(path, 'utf8')).trim();

/** A process in the group of a VM. */
async function startVm(
  id: string,
  owner?: string,
  [program, ...args]: readonly [string, ...string[]] = ['sleep', '600'],
): Promise<number> {
  const child = spawn(program, args, { stdio: 'ignore' });
  processes.push(child);
  await once(child, 'spawn');
  const pid = Number(child.pid);
  await cgroups.add(id, LIMITS, pid, owner);
  return pid;
}
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
async function endVm(id: string, pid: number): Promise<void> {
  await Promise.all(processes.filter((child) => child.pid === pid).map(end));
  await cgroups.remove(id);
}

const weightFile = () => (cgroups.kind === 'v1' ? 'cpu.shares' : 'cpu.weight');
const quotaFile = () => (cgroups.kind === 'v1' ? 'cpu.cfs_quota_us' : 'cpu.max');
const quota = () => (cgroups.kind === 'v1' ? '125000' : '125000 100000');

test('the service gets the processor before its VMs, where nobody else has grouped it', async () => {
  if (cgroups.kind !== 'v1') return;
  const child = spawn('sh', ['-c', 'while :; do sleep 1; done'], { stdio: 'ignore' });
  processes.push(child);
  await once(child, 'spawn');
  const pid = Number(child.pid);
  const groupOfChild = async () =>
    /^\d+:(?:.*,)?cpu(?:,.*)?:(.*)$/m.exec(await read(`/proc/${pid}/cgroup`))?.[1];
  const [before, group] = [await groupOfChild(), `/${name}-service`];
  await cgroups.favour(pid);
  if (before !== '/') {
    expect(await groupOfChild()).toBe(before);
    return;
  }
  expect(await groupOfChild()).toBe(group);
  const shares = async (path: string) =>
    Number(await read(join('/sys/fs/cgroup/cpu', path, 'cpu.shares')));
  expect(await shares(group)).toBe(4 * (await shares(name)));
  // A successor of a killed service finds its database there.
  cgroups = await open();
  await cgroups.favour(pid);
  await cgroups.close();
  expect(await groupOfChild()).toBe('/');
  expect(await exists(join('/sys/fs/cgroup/cpu', group))).toBe(false);
});

describe('the groups of the processor', () => {
  test('give each owner the same weight, however many VMs it has, and each VM its own limit', async () => {
    const pids = new Map<string, number>();
    for (const id of ['vm_a', 'vm_b', 'vm_c', 'vm_idle']) pids.set(id, await startVm(id));
    const pidOf = (id: string) => pids.get(id) ?? 0;
    await Promise.all(['vm_a', 'vm_b'].map((id) => cgroups.assign(id, 'greedy', pidOf(id))));
    await cgroups.assign('vm_c', 'modest', pidOf('vm_c'));
    // It is there already.
    await cgroups.assign('vm_c', 'modest', pidOf('vm_c'));
    const weightOf = async (path: string) => Number(await read(join(path, weightFile())));
    const weight = await weightOf(groupOf('greedy'));
    expect(await weightOf(groupOf('modest'))).toBe(weight);
    expect(await weightOf(groupOf('greedy', 'vm_a'))).toBe(weight);
    // One that is made for the pool is for all owners.
    expect(await weightOf(join(root(), 'vm_idle'))).toBe(weight);
    for (const [owner, id] of [
      ['greedy', 'vm_a'],
      ['greedy', 'vm_b'],
      ['modest', 'vm_c'],
    ] as const) {
      expect(await read(join(groupOf(owner, id), 'cgroup.procs'))).toBe(String(pidOf(id)));
      expect(await read(join(groupOf(owner, id), quotaFile()))).toBe(quota());
      expect(await exists(join(root(), id))).toBe(false);
    }
    expect(await read(join(root(), 'vm_idle', 'cgroup.procs'))).toBe(String(pidOf('vm_idle')));
  });

  test('give less to an owner whose VMs want several cores, as long as they do', async () => {
    const busy = await Promise.all(
      ['vm_a', 'vm_b', 'vm_c', 'vm_d'].map((id) => startVm(id, 'greedy', BUSY)),
    );
    await startVm('vm_e', 'modest', BUSY);
    const weightOf = async (owner: string) => {
      await cgroups.balance();
      return Number(await read(join(groupOf(owner), weightFile())));
    };
    const full = cgroups.kind === 'v1' ? 1024 : 100;
    await expect.poll(() => weightOf('greedy')).toBeLessThan(full / 2);
    expect(await weightOf('greedy')).toBeGreaterThanOrEqual(full / 4);
    await expect.poll(() => weightOf('modest')).toBeGreaterThan(0.8 * full);
    for (const [index, id] of ['vm_b', 'vm_c', 'vm_d'].entries()) {
      await endVm(id, busy[index + 1] ?? 0);
    }
    await expect.poll(() => weightOf('greedy')).toBeGreaterThan(0.8 * full);
  });

  test('have a VM that is made for an owner from the start', async () => {
    const pid = await startVm('vm_a', 'tenant');
    expect(await read(join(groupOf('tenant', 'vm_a'), 'cgroup.procs'))).toBe(String(pid));
    expect(await read(join(groupOf('tenant', 'vm_a'), quotaFile()))).toBe(quota());
    await cgroups.assign('vm_a', 'tenant', pid);
    cgroups = await open();
    await endVm('vm_a', pid);
    expect(await exists(groupOf('tenant'))).toBe(false);
  });

  test('keep an owner as long as it has a VM', async () => {
    const [a, b] = [await startVm('vm_a'), await startVm('vm_b')];
    await cgroups.assign('vm_a', 'tenant', a);
    await cgroups.assign('vm_b', 'tenant', b);
    await endVm('vm_a', a);
    expect(await readdir(groupOf('tenant'))).toContain('vm_b');
    expect(await readdir(groupOf('tenant'))).not.toContain('vm_a');
    await endVm('vm_b', b);
    expect(await exists(groupOf('tenant'))).toBe(false);
    await cgroups.remove('vm_b');
  });

  test('are found again by the next process', async () => {
    const [a, b] = [await startVm('vm_a'), await startVm('vm_b')];
    await cgroups.assign('vm_a', 'a/../..', a);
    cgroups = await open();
    await cgroups.assign('vm_a', 'a/../..', a);
    await cgroups.assign('vm_b', 'a/../..', b);
    const owner = groupOf(encodeURIComponent('a/../..'));
    expect(await read(join(owner, 'vm_a', 'cgroup.procs'))).toBe(String(a));
    expect(await read(join(owner, 'vm_b', 'cgroup.procs'))).toBe(String(b));
    await endVm('vm_a', a);
    await endVm('vm_b', b);
    expect(await exists(owner)).toBe(false);
  });

  test('that a crash left half made are settled by the next process', async () => {
    const [a, b] = [await startVm('vm_a'), await startVm('vm_b')];
    await cgroups.assign('vm_b', 'second', b);
    // Before the owner's first VM, before the process moved, and after it.
    for (const path of [groupOf('first'), groupOf('third'), groupOf('third', 'vm_a')])
      await mkdir(path);
    await mkdir(join(root(), 'vm_b'));
    cgroups = await open();
    for (const path of [groupOf('first'), groupOf('third'), join(root(), 'vm_b')]) {
      expect(await exists(path), path).toBe(false);
    }
    await cgroups.assign('vm_a', 'third', a);
    expect(await read(join(groupOf('third', 'vm_a'), 'cgroup.procs'))).toBe(String(a));
    expect(await read(join(groupOf('second', 'vm_b'), 'cgroup.procs'))).toBe(String(b));
    await endVm('vm_a', a);
    await endVm('vm_b', b);
    expect(await readdir(root())).not.toContain('owner-second');
  });

  test('of a VM that has ended are not made', async () => {
    const pid = await startVm('vm_a');
    await Promise.all(processes.map(end));
    await cgroups.assign('vm_a', 'tenant', pid);
    expect(await exists(groupOf('tenant'))).toBe(false);
    await cgroups.remove('vm_a');
    await cgroups.assign('vm_a', 'tenant', pid);
    expect(await exists(groupOf('tenant'))).toBe(false);
  });
});
