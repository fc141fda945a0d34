import type { WorkerSandbox } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it } from 'vitest';
import { placement } from '../../test/harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { Rooms } from '../../test/rooms.ts';
import { until } from '../../test/until.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let rooms: Rooms;
let seen: WorkerSandbox[];

beforeEach(() => {
  host = new MemoryHost();
  seen = [];
  rooms = new Rooms(host, { onChange: (record) => seen.push(record) });
});

function nothingIsLeft(): void {
  expect(host.live).toEqual([]);
  expect(rooms.capacity.free).toEqual({ vcpu: 64, memoryMib: 65_536, diskMib: 131_072 });
}

describe('a create that works', () => {
  it('goes through the states of the life in order, each newer than the last', async () => {
    const sandbox = await rooms.creator.create(placement(), NEVER);
    await sandbox.end('deleted');
    expect(seen.map(({ state }) => state)).toEqual([
      'configuring',
      'booting',
      'running',
      'stopping',
      'destroyed',
    ]);
    const revisions = seen.map(({ revision }) => revision ?? 0);
    expect(revisions).toEqual([...new Set(revisions)].sort((a, b) => a - b));
    nothingIsLeft();
  });

  it('says whose the VM is before anything of the tenant goes in', async () => {
    let atHandOver: unknown;
    host.onRestored = (vm) => {
      vm.personalize = async () => {
        atHandOver = structuredClone(vm.labels);
      };
    };
    await rooms.creator.create(placement(), NEVER);
    expect(atHandOver).toMatchObject({ role: 'sandbox', state: 'configuring' });
  });

  it('makes custom sizes by restoring, never from the pool', async () => {
    rooms = new Rooms(host, { pool: { standard: 1 } });
    await rooms.fillPool();
    const sandbox = await rooms.creator.create(placement({ memory_mib: 2048 }), NEVER);
    expect(host.requests.at(-1)).toMatchObject({
      size: { memory_mib: 2048, vcpu: 1, disk_mib: 1024 },
    });
    expect(sandbox.record()).toMatchObject({ memory_mib: 2048 });
    expect(rooms.pool.size('standard')).toBe(1);
  });
});

describe('a create that does not', () => {
  it.each([
    ['boot_failed', 'boot_failed'],
    ['timeout', 'boot_failed'],
    ['no_capacity', 'no_capacity'],
    ['disk_full', 'no_capacity'],
    ['unknown_template', 'unknown_template'],
  ] as const)('turns %s of the restore into %s and leaves nothing', async (code, answer) => {
    host.failure = () => new MicrovmError(code, 'no');
    const create = rooms.creator.create(placement(), NEVER);
    await expect(create).rejects.toMatchObject({ code: answer });
    nothingIsLeft();
  });

  it('turns a full disk of the worker into no_capacity', async () => {
    host.onRestored = (vm) => {
      vm.faults.label = Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    await expect(rooms.creator.create(placement(), NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    nothingIsLeft();
  });

  it('is rolled back when the hand-over fails', async () => {
    host.onRestored = (vm) => {
      vm.faults.personalize = new MicrovmError('vm_gone', 'died');
    };
    const request = placement();
    await expect(rooms.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'boot_failed',
    });
    expect(rooms.registry.get(request.vm_id).record()).toMatchObject({
      state: 'destroyed',
      end_reason: 'boot_failed',
    });
    nothingIsLeft();
  });

  it('may be asked for again after a roll-back', async () => {
    host.failure = () => new MicrovmError('boot_failed', 'no');
    const request = placement();
    await expect(rooms.creator.create(request, NEVER)).rejects.toThrow();
    host.failure = () => undefined;
    const sandbox = await rooms.creator.create(request, NEVER);
    expect(sandbox.state).toBe('running');
    const revisions = seen.map(({ revision }) => revision ?? 0);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
  });

  it('is rolled back when its only caller leaves, not when one of two does', async () => {
    const gate = Promise.withResolvers<void>();
    host.gate = gate.promise;
    const request = placement();
    const callers = [new AbortController(), new AbortController()] as const;
    const calls = callers.map(({ signal }) => rooms.creator.create(request, signal));
    const outcomes = Promise.allSettled(calls);
    await until(() => expect(host.restoring).toBe(1));
    callers[0].abort(new Error('left'));
    await expect(calls[0]).rejects.toThrow('left');
    expect(rooms.registry.get(request.vm_id).endReason).toBeUndefined();
    callers[1].abort(new Error('left too'));
    await outcomes;
    await until(() => expect(rooms.registry.get(request.vm_id).state).toBe('destroyed'));
    gate.resolve();
    nothingIsLeft();
  });

  it.each(['creating', 'booting'])('is rolled back when it is deleted while %s', async (when) => {
    const gate = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    const stop = async (signal: AbortSignal) => {
      reached.resolve();
      await Promise.race([
        gate.promise,
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
      ]);
    };
    if (when === 'creating') {
      host.gate = gate.promise;
      reached.resolve();
    }
    host.onRestored = (vm) => {
      if (when === 'booting') vm.personalize = (_options, signal) => stop(signal);
    };
    const request = placement();
    const create = rooms.creator.create(request, NEVER);
    create.catch(() => undefined);
    await reached.promise;
    await until(() => expect(rooms.registry.find(request.vm_id)).toBeDefined());
    const sandbox = rooms.registry.get(request.vm_id);
    await sandbox.end('deleted');
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
    await expect(create).rejects.toMatchObject({ code: 'sandbox_not_running' });
    nothingIsLeft();
  });

  it('leaves no record when there is no room', async () => {
    host.memoryMib = 100;
    const request = placement();
    await expect(rooms.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    expect(rooms.registry.find(request.vm_id)).toBeUndefined();
    host.memoryMib = 10_000;
    host.diskMib = 10;
    await expect(rooms.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    nothingIsLeft();
  });
});

describe('the end', () => {
  it('comes by itself when the VM process dies', async () => {
    const sandbox = await rooms.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).die();
    await until(() =>
      expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' }),
    );
    nothingIsLeft();
  });

  it('is tried again when the VM cannot be destroyed, and can be asked for again', async () => {
    const sandbox = await rooms.creator.create(placement(), NEVER);
    const { faults } = host.vmOf(sandbox.id);
    faults.destroys = 2;
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    const other = await rooms.creator.create(placement(), NEVER);
    host.vmOf(other.id).faults.destroys = 3;
    await expect(other.end('deleted')).rejects.toThrow('cannot destroy');
    expect(other.state).toBe('stopping');
    await other.end('idle_timeout');
    expect(other.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  });

  it('comes although the label cannot be written', async () => {
    const sandbox = await rooms.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).faults.label = new Error('disk full');
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    nothingIsLeft();
  });

  it('overtakes a pause under way', async () => {
    const sandbox = await rooms.creator.create(placement(), NEVER);
    const vm = host.vmOf(sandbox.id);
    vm.pause = (signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    const pause = sandbox.power.pause();
    pause.catch(() => undefined);
    await sandbox.end('deleted');
    await expect(pause).rejects.toMatchObject({ code: 'sandbox_not_running' });
    expect(sandbox.state).toBe('destroyed');
  });
});
