import { ServiceError, type WorkerSandbox } from '@svc/contract';
import { beforeEach, describe, expect, test } from 'vitest';
import { HeldVm } from '../../test/held-vm.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import type { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import { Activity } from './activity.ts';
import { assignmentOf } from './assignment.ts';
import { Connections } from './connections.ts';
import type { Progress } from './labels.ts';
import { Lifecycle } from './lifecycle.ts';

const START = '2026-01-01T00:00:00.000Z';
const NOT_RUNNING = { code: 'sandbox_not_running' };
const FACTS = {
  vcpu: 8,
  cpu_fraction: 0.5,
  memory_mib: 8192,
  disk_mib: 8192,
  rootfs: 'none',
  host_port: 1,
  endpoint: 'none',
};

let clock: ManualClock;
let held: HeldVm;
let vm: MemoryMicrovm;
let activity: Activity;
let connections: Connections;
let changes: WorkerSandbox[];
let faults: { error: unknown; action: string }[];

beforeEach(() => {
  clock = new ManualClock(Date.parse(START));
  held = new HeldVm();
  ({ vm } = held);
  activity = new Activity(clock);
  connections = new Connections(activity);
  [changes, faults] = [[], []];
});

function create(from: Progress = { state: 'creating', revision: 0 }): Lifecycle {
  return new Lifecycle({
    assignment: assignmentOf(placement({ vm_id: 'vm_1', agent: ONE_SHOT }), clock),
    facts: FACTS,
    activity,
    connections,
    clock,
    onChange: (record) => changes.push(record),
    onFault: (error, action) => faults.push({ error, action }),
    from,
  });
}
async function running(): Promise<Lifecycle> {
  const lifecycle = create();
  await lifecycle.transition('configuring');
  lifecycle.attach(held);
  await lifecycle.transition('booting');
  await lifecycle.transition('running');
  return lifecycle;
}

describe('a move', () => {
  test('is in the labels before it is shown, except for booting', async () => {
    const lifecycle = create();
    await lifecycle.transition('configuring');
    lifecycle.attach(held);
    await lifecycle.transition('booting');
    expect(vm.history).toEqual([]);
    const label = vm.label.bind(vm);
    const seen: string[] = [];
    vm.label = async (data) => {
      seen.push(`${data.state} while ${lifecycle.state}`);
      await label(data);
    };
    await lifecycle.transition('running');
    await lifecycle.transition('paused');
    expect(seen).toEqual(['running while booting', 'paused while running']);
    expect(changes.map(({ state, revision }) => [state, revision])).toEqual([
      ['configuring', 1],
      ['booting', 2],
      ['running', 3],
      ['paused', 4],
    ]);
    expect(vm.labels).toMatchObject({ vm_id: 'vm_1', state: 'paused', revision: 3 });
  });

  test('that is not legal writes nothing', async () => {
    const lifecycle = await running();
    const written = vm.history.length;
    for (const to of ['configuring', 'booting'] as const) {
      await expect(lifecycle.transition(to)).rejects.toThrow('cannot move');
    }
    expect(vm.history).toHaveLength(written);
  });

  test('to running restarts the idle time, and no other does', async () => {
    const lifecycle = await running();
    clock.advance(1000);
    await lifecycle.transition('paused');
    expect(activity.idleSince).toBe(0);
    clock.advance(1000);
    await lifecycle.transition('running');
    expect(activity.idleSince).toBe(2000);
  });

  test('does not happen when the sandbox begins to end meanwhile', async () => {
    const lifecycle = await running();
    vm.label = async () => lifecycle.beginToEnd('deleted');
    await expect(lifecycle.transition('paused')).rejects.toMatchObject(NOT_RUNNING);
    expect(lifecycle.state).toBe('running');
  });

  test('to running needs its label; later ones are reported when theirs cannot be written', async () => {
    const lifecycle = create();
    await lifecycle.transition('configuring');
    lifecycle.attach(held);
    await lifecycle.transition('booting');
    const full = new Error('disk full');
    vm.faults.label = full;
    await expect(lifecycle.transition('running')).rejects.toBe(full);
    expect([lifecycle.state, faults]).toEqual(['booting', []]);
    vm.faults.label = undefined;
    await lifecycle.transition('running');
    vm.faults.label = full;
    await lifecycle.transition('paused');
    expect(lifecycle.state).toBe('paused');
    expect(faults).toEqual([{ error: full, action: 'record that vm_1 is paused' }]);
  });
});

describe('usage', () => {
  test('begins when the sandbox first runs, and ends with it', async () => {
    const lifecycle = create();
    expect(await lifecycle.measure()).toBeUndefined();
    clock.advance(500);
    vm.cpu = 3;
    await lifecycle.transition('configuring');
    lifecycle.attach(held);
    await lifecycle.transition('booting');
    await lifecycle.transition('running');
    expect(vm.labels).toMatchObject({
      running_at: '2026-01-01T00:00:00.500Z',
      metered_from: { cpu_ms: 3000, at_ms: 500 },
    });
    expect(await lifecycle.measure()).toEqual({ cpu_ms: 0, wall_ms: 0 });
    vm.cpu = 3.2504;
    clock.advance(1000.4);
    expect(await lifecycle.measure()).toEqual({ cpu_ms: 250, wall_ms: 1000 });
    // A step of the wall clock is no time.
    clock.stepWall(60_000);
    await lifecycle.transition('paused');
    await lifecycle.transition('running');
    expect(await lifecycle.measure()).toEqual({ cpu_ms: 250, wall_ms: 1000 });
    lifecycle.beginToEnd('deleted');
    vm.die();
    lifecycle.finish();
    clock.advance(9000);
    expect(await lifecycle.measure()).toEqual({ cpu_ms: 250, wall_ms: 1000 });
  });

  test('never falls, and stays when the VM does not tell', async () => {
    const lifecycle = await running();
    vm.cpu = 5;
    await lifecycle.refreshCpuSeconds();
    vm.cpu = 4;
    await lifecycle.refreshCpuSeconds();
    expect(lifecycle.record().cpu_seconds).toBe(5);
    vm.cpuSeconds = async () => Promise.reject(new Error('gone'));
    await lifecycle.refreshCpuSeconds();
    expect(await lifecycle.measure()).toMatchObject({ cpu_ms: 3500 });
  });

  test('goes on after a restart of the worker', async () => {
    const from = { state: 'running', revision: 5, running_at: START } as const;
    clock.advance(7000);
    vm.cpu = 2;
    const metered = create({ ...from, metered_from: { cpu_ms: 500, at_ms: 4000 } });
    metered.attach(held);
    expect(await metered.measure()).toEqual({ cpu_ms: 1500, wall_ms: 3000 });
    const old = create(from);
    old.attach(held);
    expect(await old.measure()).toEqual({ cpu_ms: 2000, wall_ms: 7000 });
    clock.stepWall(-8000);
    expect(await old.measure()).toMatchObject({ wall_ms: 0 });
    const less = create({ ...from, metered_from: { cpu_ms: 9000, at_ms: 4000 } });
    less.attach(held);
    expect(await less.measure()).toMatchObject({ cpu_ms: 0 });
  });
});

describe('the VM', () => {
  test('is there for users from its attachment until the sandbox begins to end', async () => {
    const lifecycle = create();
    expect(() => lifecycle.assignedVm()).toThrow(expect.objectContaining(NOT_RUNNING));
    expect(lifecycle.record()).toMatchObject(FACTS);
    await lifecycle.transition('configuring');
    lifecycle.attach(held);
    expect(lifecycle.assignedVm()).toBe(vm);
    expect(() => lifecycle.vmIn('running')).toThrow(expect.objectContaining(NOT_RUNNING));
    expect(lifecycle.record()).toMatchObject({
      vcpu: 1,
      memory_mib: 512,
      disk_mib: 1024,
      rootfs: 'i',
      host_port: 22,
      endpoint: '198.18.0.1:22',
    });
    await lifecycle.transition('booting');
    await lifecycle.transition('running');
    expect(lifecycle.vmIn('running')).toBe(vm);
    expect(lifecycle.isIn('paused')).toBe(false);
    lifecycle.beginToEnd('deleted');
    expect(lifecycle.isIn('running')).toBe(false);
    for (const use of [() => lifecycle.assignedVm(), () => lifecycle.vmIn('running')]) {
      expect(use).toThrow(expect.objectContaining(NOT_RUNNING));
    }
    expect(lifecycle.vm).toBe(vm);
  });
});

describe('the end', () => {
  test('has the first reason, and stops all work with the first error', async () => {
    const lifecycle = await running();
    expect([lifecycle.endReason, lifecycle.signal.aborted]).toEqual([undefined, false]);
    lifecycle.beginToEnd('idle_timeout');
    lifecycle.beginToEnd('deleted', new ServiceError('shutting_down'));
    expect(lifecycle.endReason).toBe('idle_timeout');
    expect(lifecycle.signal.reason).toMatchObject(NOT_RUNNING);
    const other = await running();
    const error = new ServiceError('shutting_down');
    other.beginToEnd('deleted', error);
    expect(other.signal.reason).toBe(error);
  });

  test('shows stopping, closes the clients, and is in the labels', async () => {
    const lifecycle = await running();
    const closes: unknown[] = [];
    connections.attach({ close: (...how) => closes.push(how) });
    expect(lifecycle.record().active_connections).toBe(1);
    lifecycle.beginToEnd('deleted');
    changes = [];
    await lifecycle.stop();
    expect(changes).toMatchObject([{ state: 'stopping', end_reason: 'deleted' }]);
    expect(closes).toEqual([[1001, 'sandbox destroyed']]);
    expect(vm.labels).toMatchObject({ state: 'stopping', end_reason: 'deleted' });
    connections.attach({ close: (...how) => closes.push(how) });
    clock.advance(2500);
    expect(lifecycle.endedAt).toBeUndefined();
    lifecycle.finish();
    expect(closes).toHaveLength(2);
    expect([lifecycle.state, lifecycle.isLive, lifecycle.vm]).toEqual([
      'destroyed',
      false,
      undefined,
    ]);
    expect(held.released).toBe(1);
    expect(lifecycle.endedAt).toBe(2500);
    expect(changes.at(-1)).toMatchObject({
      state: 'destroyed',
      ended_at: '2026-01-01T00:00:02.500Z',
      end_age_ms: 0,
      active_connections: 0,
      agent_status: 'failed',
    });
  });

  test('says how long ago it was, although the wall clock was set since', async () => {
    const lifecycle = await running();
    expect(lifecycle.record()).not.toHaveProperty('end_age_ms');
    lifecycle.beginToEnd('deleted');
    await lifecycle.stop();
    lifecycle.finish();
    clock.stepWall(-3_600_000);
    clock.advance(1500.4);
    expect(lifecycle.record()).toMatchObject({ ended_at: START, end_age_ms: 1500 });
  });

  test('of a sandbox that does not run shows nothing before it is over', async () => {
    const lifecycle = create();
    lifecycle.beginToEnd('deleted');
    await lifecycle.stop();
    expect(changes).toEqual([]);
    lifecycle.finish();
    expect(changes).toMatchObject([{ state: 'destroyed' }]);
    expect(changes[0]).not.toHaveProperty('agent_status');
  });
});

describe('the exit of an agent', () => {
  test('is noted once, in the labels of the state that they show', async () => {
    const lifecycle = await running();
    expect(lifecycle.agentHasExited).toBe(false);
    expect(lifecycle.record()).toMatchObject({ agent_status: 'running' });
    await lifecycle.noteAgentExit(0);
    await lifecycle.noteAgentExit(1);
    expect(lifecycle.agentHasExited).toBe(true);
    expect(vm.labels).toMatchObject({ state: 'running', agent_exit_code: 0 });
    expect(changes.at(-1)).toMatchObject({ agent_status: 'completed', agent_exit_code: 0 });
    const noted = changes.length;
    await lifecycle.noteAgentExit(1);
    expect(changes).toHaveLength(noted);
  });

  test('is reported although it cannot be written', async () => {
    const lifecycle = await running();
    vm.faults.label = new Error('disk full');
    await expect(lifecycle.noteAgentExit(3)).rejects.toThrow('disk full');
    expect(changes.at(-1)).toMatchObject({ agent_status: 'failed', agent_exit_code: 3 });
  });
});

test('a workspace is loaded once its label says so', async () => {
  const lifecycle = await running();
  expect(lifecycle.workspaceIsLoaded).toBe(false);
  vm.faults.label = new Error('disk full');
  await expect(lifecycle.noteWorkspaceLoaded()).rejects.toThrow('disk full');
  vm.faults.label = undefined;
  await lifecycle.noteWorkspaceLoaded();
  expect(lifecycle.workspaceIsLoaded).toBe(true);
  expect(vm.labels).toMatchObject({ workspace_loaded: true, state: 'running' });
});

test('a quarantine is in the labels, and can end', async () => {
  const lifecycle = await running();
  expect(lifecycle.isQuarantined).toBe(false);
  await lifecycle.setQuarantined(true);
  expect(lifecycle.isQuarantined).toBe(true);
  expect(vm.labels).toMatchObject({ quarantined: true, state: 'running' });
  await lifecycle.setQuarantined(false);
  expect(lifecycle.isQuarantined).toBe(false);
  expect(vm.labels).toMatchObject({ quarantined: false });
});
