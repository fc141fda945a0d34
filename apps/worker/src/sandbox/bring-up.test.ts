import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HeldVm } from '../../test/held-vm.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { ONE_SHOT, type PlacementChanges, placement, sessionAgent } from '../../test/placement.ts';
import type { SandboxAgent } from './agent.ts';
import { assignmentOf } from './assignment.ts';
import type { VmLabels } from './labels.ts';
import type { ReservedVm } from './lifecycle.ts';
import { Sandbox } from './sandbox.ts';
import type { MountedWorkspace } from './workspace.ts';

const FACTS = {
  vcpu: 1,
  cpu_fraction: 1,
  memory_mib: 512,
  disk_mib: 1024,
  rootfs: 'none',
  host_port: 0,
  endpoint: '',
};
let clock: ManualClock;
let held: HeldVm;
let steps: string[];
let faults: unknown[];

beforeEach(() => {
  clock = new ManualClock();
  clock.advance(5_000);
  held = new HeldVm();
  [steps, faults] = [[], []];
});
afterEach(() => {
  vi.useRealTimers();
});

function sandboxOf(changes: PlacementChanges = {}): Sandbox {
  const created_at = new Date(clock.wall()).toISOString();
  return new Sandbox({
    assignment: assignmentOf(placement({ vm_id: 'vm_1', created_at, ...changes }), clock),
    facts: FACTS,
    clock,
    onChange: () => undefined,
    beforeDestroy: async () => undefined,
    onFault: (error) => faults.push(error),
    from: { state: 'creating', revision: 0 },
  });
}
const step = (name: string) => async () => {
  steps.push(name);
};
/** An agent with so many clients. */
const agentWith = (clients: number) =>
  ({
    announce: async (frame: unknown) => {
      steps.push(JSON.stringify(frame));
      return clients;
    },
    beforePause: step('the agent prepares for a pause'),
    finish: step('the agent saves its state'),
    dispose: step('the agent is gone'),
  }) as unknown as SandboxAgent;
const noWorkspace = () => undefined;

it('counts the lifetime with the monotonic clock, from the creation', () => {
  clock.stepWall(-3_600_000);
  const created_at = new Date(clock.wall() - 20_000).toISOString();
  const sandbox = sandboxOf({ created_at, max_lifetime_seconds: 100 });
  expect(sandbox.lifetimeEndsAt).toBe(5_000 + 80_000);
});

it('has an agent once it has started, which is told of pauses, of a cancel, and of the end', async () => {
  const sandbox = sandboxOf({ agent: ONE_SHOT });
  expect(sandbox.isSession).toBe(false);
  expect(await sandbox.cancel('user_request')).toBe(0);
  const agent = agentWith(2);
  let labels: VmLabels | undefined;
  await sandbox.bringUp({
    acquire: async (written) => {
      labels = written;
      return held;
    },
    mountWorkspace: noWorkspace,
    startAgent: async (on) => {
      expect(on).toBe(held.vm);
      expect(sandbox.agent).toBeUndefined();
      return agent;
    },
  });
  expect(labels).toMatchObject({ vm_id: 'vm_1', state: 'configuring' });
  expect(sandbox.agent).toBe(agent);
  expect(sandbox.assignedVm()).toBe(held.vm);
  await sandbox.power.pause();
  await sandbox.power.resume();
  expect(await sandbox.cancel('user_request')).toBe(2);
  await sandbox.noteAgentExit(3);
  expect(sandbox.agentHasExited).toBe(true);
  expect(sandbox.record().agent_exit_code).toBe(3);
  await sandbox.end('deleted');
  expect(steps).toEqual([
    'the agent prepares for a pause',
    '{"type":"system","event":"cancel","reason":"user_request"}',
    'the agent saves its state',
    'the agent is gone',
  ]);
  expect(sandbox.endReason).toBe('deleted');
  expect(held.released).toBe(1);
  expect(faults).toEqual([]);
});

it('is that of a session if its agent is', () => {
  expect(sandboxOf({ agent: sessionAgent('ses_1') }).isSession).toBe(true);
  expect(sandboxOf().isSession).toBe(false);
});

it('has a workspace once it is mounted, which is saved before a pause and at the end', async () => {
  const workspace = {
    load: step('it is loaded'),
    start: () => steps.push('it is saved from now on'),
    beforePause: step('it is saved before a pause'),
    finish: step('it is saved at the end'),
  } as unknown as MountedWorkspace;
  const sandbox = sandboxOf();
  expect(sandbox.workspace).toBeUndefined();
  await sandbox.bringUp({ acquire: async () => held, mountWorkspace: () => workspace });
  expect(sandbox.workspace).toBe(workspace);
  await sandbox.power.ensureRunning(new AbortController().signal);
  await sandbox.power.pause();
  await sandbox.end('deleted');
  expect(steps).toEqual([
    'it is loaded',
    'it is saved from now on',
    'it is saved before a pause',
    'it is saved at the end',
  ]);
});

it('measures its use since it first ran', async () => {
  const sandbox = sandboxOf();
  expect(await sandbox.measure()).toBeUndefined();
  await sandbox.bringUp({ acquire: async () => held, mountWorkspace: noWorkspace });
  const before = await sandbox.measure();
  held.vm.cpu += 2;
  clock.advance(10_000);
  expect(await sandbox.measure()).toEqual({
    cpu_ms: (before?.cpu_ms ?? 0) + 2_000,
    wall_ms: (before?.wall_ms ?? 0) + 10_000,
  });
  held.vm.cpu += 1;
  await sandbox.refreshCpuSeconds();
  expect(sandbox.record().cpu_seconds).toBe(held.vm.cpu);
  expect([sandbox.isQuarantined, held.vm.labels.quarantined]).toEqual([false, undefined]);
  await sandbox.setQuarantined(true);
  expect([sandbox.isQuarantined, held.vm.labels.quarantined]).toEqual([true, true]);
  await sandbox.end('deleted');
});

it('destroys a VM that is ready only after its end gave up to wait for it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const sandbox = sandboxOf();
  const asked = Promise.withResolvers<void>();
  const vmReady = Promise.withResolvers<ReservedVm>();
  const acquire = () => {
    asked.resolve();
    return vmReady.promise;
  };
  const up = sandbox.bringUp({ acquire, mountWorkspace: noWorkspace });
  up.catch(() => undefined);
  await asked.promise;
  const ended = sandbox.end('deleted');
  expect(sandbox.isEnding).toBe(true);
  await vi.advanceTimersByTimeAsync(60_000);
  await ended;
  expect([sandbox.state, sandbox.isEnding]).toEqual(['destroyed', false]);
  vmReady.resolve(held);
  await expect(up).rejects.toMatchObject({ code: 'sandbox_not_running' });
  expect(held.released).toBe(1);
  expect(await held.vm.exited).toMatchObject({ reason: 'destroyed' });
});

it('saves nothing at its end while its VM is held, or once the end is hurried', async () => {
  const never = new Promise<void>(() => undefined);
  const start = async (): Promise<Sandbox> => {
    const sandbox = sandboxOf({ agent: ONE_SHOT });
    const acquire = async () => held;
    const startAgent = async () => ({ ...agentWith(0), finish: () => never });
    await sandbox.bringUp({ acquire, mountWorkspace: noWorkspace, startAgent });
    return sandbox;
  };
  const first = await start();
  await first.power.hold();
  await first.end('worker_lost');
  expect(first.state).toBe('destroyed');
  held = new HeldVm();
  const second = await start();
  const ended = second.end('deleted');
  second.hurryEnd();
  await ended;
  expect(second.state).toBe('destroyed');
});

it('ends when its VM dies, and reports what cannot be cleaned up', async () => {
  const sandbox = sandboxOf({ agent: ONE_SHOT });
  const broken = new Error('no');
  const startAgent = async () => {
    held.vm.die();
    await expect.poll(() => sandbox.endReason).toBe('boot_failed');
    throw broken;
  };
  const acquire = async () => held;
  await expect(sandbox.bringUp({ acquire, mountWorkspace: noWorkspace, startAgent })).rejects.toBe(
    broken,
  );
  held = new HeldVm();
  const other = sandboxOf();
  await other.bringUp({ acquire, mountWorkspace: noWorkspace });
  held.vm.faults.destroys = 3;
  held.vm.die();
  await expect.poll(() => faults).toEqual([expect.objectContaining({ code: 'internal' })]);
  expect(other.endReason).toBe('worker_lost');
});
