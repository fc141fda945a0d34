import { ServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, test } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import type { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { placement } from '../../test/placement.ts';
import { Power, type PowerSteps } from './power.ts';
import type { Sandbox } from './sandbox.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let sandbox: Sandbox;
let vm: MemoryMicrovm;

beforeEach(async () => {
  host = new MemoryHost();
  sandbox = await new CoreHarness(host).creator.create(placement(), NEVER);
  vm = host.vmOf(sandbox.id);
});

const unreachable = { code: 'worker_unreachable' };
const notRunning = { code: 'sandbox_not_running' };
const broken = new MicrovmError('internal', 'no');

describe('a pause', () => {
  test('ends what lasts until the next one', async () => {
    const first = sandbox.power.untilPause;
    await sandbox.power.pause();
    expect(first.aborted).toBe(true);
    expect(first.reason).toMatchObject(notRunning);
    expect(sandbox.power.untilPause.aborted).toBe(false);
    await sandbox.power.pause();
    expect(vm.pauses).toBe(1);
    await sandbox.power.resume();
    await sandbox.power.resume();
    expect(vm.resumes).toBe(1);
    expect(sandbox.power.untilPause.aborted).toBe(false);
  });

  test('that fails ends nothing and leaves the sandbox running', async () => {
    const { untilPause } = sandbox.power;
    vm.faults.pause = broken;
    await expect(sandbox.power.pause()).rejects.toBe(broken);
    expect([sandbox.state, untilPause.aborted]).toEqual(['running', false]);
    expect(sandbox.power.untilPause).toBe(untilPause);
  });

  test('of a sandbox that has ended is refused, and so is its resume', async () => {
    await sandbox.end('deleted');
    for (const done of [sandbox.power.pause(), sandbox.power.resume()]) {
      await expect(done).rejects.toMatchObject(notRunning);
    }
    for (const use of [sandbox.power.ensureRunning(NEVER), sandbox.power.runningVm(NEVER)]) {
      await expect(use).rejects.toMatchObject(notRunning);
    }
  });
});

describe('the use of a VM', () => {
  test('resumes a paused one once, or leaves it paused', async () => {
    await sandbox.power.pause();
    await expect(sandbox.power.runningVm(NEVER)).rejects.toMatchObject(notRunning);
    expect(sandbox.state).toBe('paused');
    const uses = [1, 2, 3].map(() => sandbox.power.ensureRunning(NEVER));
    expect(await Promise.all(uses)).toEqual([vm, vm, vm]);
    expect(vm.resumes).toBe(1);
    expect(await sandbox.power.runningVm(NEVER)).toBe(vm);
  });

  test('waits for a pause in progress', async () => {
    const gate = Promise.withResolvers<void>();
    const pause = vm.pause.bind(vm);
    vm.pause = async (signal) => {
      await gate.promise;
      await pause(signal);
    };
    const paused = sandbox.power.pause();
    const [strict, lenient] = [sandbox.power.runningVm(NEVER), sandbox.power.ensureRunning(NEVER)];
    strict.catch(() => undefined);
    const left = sandbox.power.ensureRunning(AbortSignal.abort(new Error('left')));
    await expect(left).rejects.toThrow('left');
    gate.resolve();
    await paused;
    await expect(strict).rejects.toMatchObject(notRunning);
    expect(await lenient).toBe(vm);
  });

  test('does not wait for a caller who has left', async () => {
    const gone = AbortSignal.abort(new Error('left'));
    await expect(sandbox.power.runningVm(gone)).rejects.toThrow('left');
    await sandbox.power.pause();
    await expect(sandbox.power.ensureRunning(gone)).rejects.toThrow('left');
  });
});

describe('a VM that is held', () => {
  test('is stopped once, refuses every use, and goes on when it is released', async () => {
    await sandbox.power.hold();
    await sandbox.power.hold();
    expect([vm.pauses, vm.paused, sandbox.state]).toEqual([1, true, 'running']);
    expect(sandbox.power.isHeld).toBe(true);
    const { power } = sandbox;
    for (const use of [
      power.pause(),
      power.resume(),
      power.ensureRunning(NEVER),
      power.runningVm(NEVER),
    ]) {
      await expect(use).rejects.toMatchObject(unreachable);
    }
    await power.release();
    expect([vm.resumes, vm.paused, power.isHeld]).toEqual([1, false, false]);
    await power.release();
    expect(vm.resumes).toBe(1);
    expect(await power.runningVm(NEVER)).toBe(vm);
  });

  test('that was paused stays paused', async () => {
    await sandbox.power.pause();
    await sandbox.power.hold();
    expect([vm.pauses, sandbox.power.isHeld]).toEqual([1, true]);
    await sandbox.power.release();
    expect([vm.resumes, vm.paused, sandbox.state]).toEqual([0, true, 'paused']);
  });

  test('is held again after a failure, and stays held when it cannot be released', async () => {
    vm.faults.pause = broken;
    await expect(sandbox.power.hold()).rejects.toBe(broken);
    expect(sandbox.power.isHeld).toBe(false);
    vm.faults.pause = undefined;
    await sandbox.power.hold();
    vm.faults.resume = broken;
    await expect(sandbox.power.release()).rejects.toBe(broken);
    expect(sandbox.power.isHeld).toBe(true);
    vm.faults.resume = undefined;
    await sandbox.power.release();
    expect([vm.paused, sandbox.power.isHeld]).toEqual([false, false]);
  });

  test('is released after a failure, in which it may have been stopped', async () => {
    vm.faults.pause = broken;
    await expect(sandbox.power.hold()).rejects.toBe(broken);
    expect([sandbox.power.isHeld, sandbox.power.mayBeStopped]).toEqual([false, true]);
    await sandbox.power.release();
    expect([vm.resumes, sandbox.power.mayBeStopped]).toEqual([1, false]);
  });

  test('can be held again after it was released', async () => {
    await sandbox.power.hold();
    await sandbox.power.release();
    await sandbox.power.hold();
    expect([vm.pauses, vm.paused]).toEqual([2, true]);
  });

  test('ends without being saved or resumed', async () => {
    await sandbox.power.hold();
    await sandbox.end('worker_lost');
    await sandbox.power.release();
    expect([sandbox.state, vm.resumes]).toEqual(['destroyed', 0]);
  });
});

describe('the steps around a pause', () => {
  /** The power of a sandbox that is running, with these steps. */
  function powerWith(steps: Partial<PowerSteps>, calls: string[] = []) {
    const ending = new AbortController();
    const lifecycle = {
      signal: ending.signal,
      isIn: (state: string) => state === 'running',
      vmIn: () => vm,
      transition: async (to: string) => void calls.push(to),
    };
    return new Power(lifecycle, {
      usable: async () => undefined,
      beforePause: async () => undefined,
      ...steps,
    });
  }

  test('come in order', async () => {
    const calls: string[] = [];
    const power = powerWith(
      {
        usable: async () => void calls.push('usable'),
        beforePause: async () => void calls.push(vm.paused ? 'too late' : 'before'),
      },
      calls,
    );
    await power.pause();
    expect(calls).toEqual(['usable', 'before', 'paused']);
  });

  test('that fail leave the VM running', async () => {
    for (const step of ['usable', 'beforePause'] as const) {
      const error = new ServiceError('workspace_unavailable');
      const power = powerWith({ [step]: async () => Promise.reject(error) });
      await expect(power.pause()).rejects.toBe(error);
      expect(vm.pauses).toBe(0);
    }
  });

  test('of its use are awaited, as long as the caller stays', async () => {
    const usable = Promise.withResolvers<void>();
    const power = powerWith({ usable: () => usable.promise });
    for (const use of ['ensureRunning', 'runningVm'] as const) {
      const leaving = new AbortController();
      const left = power[use](leaving.signal);
      leaving.abort(new Error('left'));
      await expect(left).rejects.toThrow('left');
    }
    const uses = [power.ensureRunning(NEVER), power.runningVm(NEVER)];
    usable.resolve();
    expect(await Promise.all(uses)).toEqual([vm, vm]);
    expect(await power.idle()).toBeUndefined();
  });
});
