import { setImmediate } from 'node:timers/promises';
import type { WorkerSandbox } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let core: CoreHarness;
let seen: WorkerSandbox[];

beforeEach(() => {
  host = new MemoryHost();
  seen = [];
  core = new CoreHarness(host, { onChange: (record) => seen.push(record) });
});

function nothingIsLeft(): void {
  expect(host.live).toEqual([]);
  expect(core.capacity.free).toEqual({ vcpu: 64, memoryMib: 65_536, diskMib: 131_072 });
}

describe('a create that fails and cannot be undone', () => {
  it('reports why it failed, and releases its capacity', async () => {
    host.onRestored = (vm) => {
      vm.faults.personalize = new MicrovmError('host_disk_full', 'no space');
      vm.faults.destroys = 3;
    };
    await expect(core.creator.create(placement(), NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    expect(core.faults).toMatchObject([{ name: 'CleanupError' }]);
    expect(core.capacity.free.vcpu).toBe(64);
  });
});

describe('a create that succeeds', () => {
  it('passes through the states in order, each with a higher revision', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
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

  it('labels the VM before any data of the tenant goes in', async () => {
    let atHandOver: unknown;
    host.onRestored = (vm) => {
      vm.personalize = async () => {
        atHandOver = structuredClone(vm.labels);
      };
    };
    await core.creator.create(placement(), NEVER);
    expect(atHandOver).toMatchObject({ role: 'sandbox', state: 'configuring' });
  });

  it('restores a VM for a custom size and does not use the pool', async () => {
    core = new CoreHarness(host, { pool: { standard: 1 } });
    await core.fillPool();
    const sandbox = await core.creator.create(placement({ memory_mib: 2048 }), NEVER);
    expect(host.requests.at(-1)).toMatchObject({
      size: { memory_mib: 2048, vcpu: 1, disk_mib: 1024 },
    });
    expect(sandbox.record()).toMatchObject({ memory_mib: 2048 });
    expect(core.pool.size('standard')).toBe(1);
  });

  it('does not wait behind all the unusual sizes of another tenant', async () => {
    const gate = Promise.withResolvers<void>();
    host.prepareGate = gate.promise;
    const greedy = [1024, 2048, 4096, 8192, 16_384].map((memory_mib, index) =>
      core.creator.create({ ...placement({ memory_mib }), vm_id: `vm_greedy_${index}` }, NEVER),
    );
    await expect.poll(() => host.prepared.length).toBe(2);
    const other = { ...placement({ vcpu: 8 }), vm_id: 'vm_other', tenant_id: 'usr_other' };
    const modest = core.creator.create(other, NEVER);
    await expect.poll(() => core.capacity.free.vcpu).toBe(64 - greedy.length - 8);
    await setImmediate(); // It has its capacity, and queues for its snapshot.
    gate.resolve();
    await Promise.all([modest, ...greedy]);
    expect(host.prepared.findIndex(({ vcpu }) => vcpu === 8)).toBeLessThanOrEqual(2);
  });
});

describe('a create that fails', () => {
  it.each([
    ['boot_failed', 'boot_failed'],
    ['timeout', 'boot_failed'],
    ['no_capacity', 'no_capacity'],
    ['disk_full', 'no_capacity'],
    ['unknown_template', 'unknown_template'],
  ] as const)('turns %s of the restore into %s and leaves nothing behind', async (code, answer) => {
    host.failure = () => new MicrovmError(code, 'no');
    const create = core.creator.create(placement(), NEVER);
    await expect(create).rejects.toMatchObject({ code: answer });
    nothingIsLeft();
  });

  it('is refused when the image does not carry the build of its agent', async () => {
    const { task: _task, ...agent } = ONE_SHOT;
    const request = (version: string) => placement({ agent: { ...agent, version } });
    await expect(core.creator.create(request('1.2.4'), NEVER)).rejects.toMatchObject({
      code: 'agent_version_unavailable',
    });
    await expect(
      core.creator.create(
        placement({ agent: { ...agent, kind: 'deictic', version: '1.2.3' } }),
        NEVER,
      ),
    ).rejects.toMatchObject({ code: 'agent_version_unavailable' });
    nothingIsLeft();
    expect(host.requests).toEqual([]);
  });

  it('turns a full disk of the worker into no_capacity', async () => {
    host.onRestored = (vm) => {
      vm.faults.label = Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    await expect(core.creator.create(placement(), NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    nothingIsLeft();
  });

  it('is rolled back when the hand-over fails', async () => {
    host.onRestored = (vm) => {
      vm.faults.personalize = new MicrovmError('vm_gone', 'died');
    };
    const request = placement();
    await expect(core.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'boot_failed',
    });
    expect(core.registry.get(request.vm_id).record()).toMatchObject({
      state: 'destroyed',
      end_reason: 'boot_failed',
    });
    nothingIsLeft();
  });

  it('may be retried after a roll-back', async () => {
    host.failure = () => new MicrovmError('boot_failed', 'no');
    const request = placement();
    await expect(core.creator.create(request, NEVER)).rejects.toThrow();
    host.failure = () => undefined;
    const sandbox = await core.creator.create(request, NEVER);
    expect(sandbox.state).toBe('running');
    const revisions = seen.map(({ revision }) => revision ?? 0);
    expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
  });

  it('is rolled back when the last of its callers leaves', async () => {
    const gate = Promise.withResolvers<void>();
    host.gate = gate.promise;
    const request = placement();
    const callers = [new AbortController(), new AbortController()] as const;
    const calls = callers.map(({ signal }) => core.creator.create(request, signal));
    const outcomes = Promise.allSettled(calls);
    await expect.poll(() => host.restoring).toBe(1);
    callers[0].abort(new Error('left'));
    await expect(calls[0]).rejects.toThrow('left');
    expect(core.registry.get(request.vm_id).endReason).toBeUndefined();
    callers[1].abort(new Error('left too'));
    await outcomes;
    await expect.poll(() => core.registry.get(request.vm_id).state).toBe('destroyed');
    gate.resolve();
    nothingIsLeft();
  });

  it.each(['creating', 'booting'])(
    'is rolled back when the sandbox is deleted while %s',
    async (when) => {
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
      const create = core.creator.create(request, NEVER);
      create.catch(() => undefined);
      await reached.promise;
      await expect.poll(() => core.registry.find(request.vm_id)).toBeDefined();
      const sandbox = core.registry.get(request.vm_id);
      await sandbox.end('deleted');
      expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
      await expect(create).rejects.toMatchObject({ code: 'sandbox_not_running' });
      nothingIsLeft();
    },
  );

  it('leaves no record when the machine lacks memory or disk', async () => {
    host.memoryMib = 100;
    const request = placement();
    await expect(core.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    expect(core.registry.find(request.vm_id)).toBeUndefined();
    host.memoryMib = 10_000;
    host.diskMib = 10;
    await expect(core.creator.create(request, NEVER)).rejects.toMatchObject({
      code: 'no_capacity',
    });
    nothingIsLeft();
  });
});
