import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import type { SandboxAgent } from './agent.ts';
import { Ending, type EndingOptions } from './ending.ts';
import type { MountedWorkspace } from './workspace.ts';

const NEVER = new AbortController().signal;
let host: MemoryHost;
let core: CoreHarness;

beforeEach(() => {
  host = new MemoryHost();
  core = new CoreHarness(host);
});

function nothingIsLeft(): void {
  expect(host.live).toEqual([]);
  expect(core.capacity.free).toEqual({ vcpu: 64, memoryMib: 65_536, diskMib: 131_072 });
}

describe('a teardown', () => {
  it('starts when the VM process dies', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).die();
    await expect
      .poll(() => sandbox.record())
      .toMatchObject({ state: 'destroyed', end_reason: 'worker_lost' });
    nothingIsLeft();
  });

  it('is retried when the VM cannot be destroyed, and can be repeated after it has failed', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    const { faults } = host.vmOf(sandbox.id);
    faults.destroys = 2;
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    const other = await core.creator.create(placement(), NEVER);
    host.vmOf(other.id).faults.destroys = 3;
    await expect(other.end('deleted')).rejects.toThrow('cannot destroy');
    expect(other.state).toBe('stopping');
    await other.end('idle_timeout');
    expect(other.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  });

  it('succeeds although the label cannot be written', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
    host.vmOf(sandbox.id).faults.label = new Error('disk full');
    await sandbox.end('deleted');
    expect(sandbox.state).toBe('destroyed');
    nothingIsLeft();
  });

  it('aborts a pause in progress', async () => {
    const sandbox = await core.creator.create(placement(), NEVER);
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

describe('the steps of a teardown', () => {
  const broken = new Error('no');
  let steps: string[];
  let faults: { readonly error: unknown; readonly action: string }[];

  beforeEach(() => {
    [steps, faults] = [[], []];
  });

  /** A teardown that notes its steps. */
  function endingOf({
    hasRun = true,
    fails = {},
    agentFinish,
  }: {
    readonly hasRun?: boolean;
    readonly fails?: Readonly<Record<string, Error>>;
    readonly agentFinish?: () => Promise<void>;
  } = {}): Ending {
    const step = (name: string) => async () => {
      steps.push(name);
      const failure = fails[name];
      if (failure !== undefined) throw failure;
    };
    const agent = {
      finish: agentFinish ?? step('save the agent'),
      dispose: step('dispose of the agent'),
    } as unknown as SandboxAgent;
    const workspace = { finish: step('save the workspace') } as unknown as MountedWorkspace;
    const vm = { destroy: step('destroy the VM') } as unknown as NonNullable<
      EndingOptions['lifecycle']['vm']
    >;
    return new Ending({
      lifecycle: {
        hasRun,
        vm,
        stop: step('stop'),
        refreshCpuSeconds: step('read the CPU time'),
        finish: () => void steps.push('finish'),
      },
      agent: () => agent,
      workspace: () => workspace,
      provisioned: step('wait for the VM'),
      powerIdle: step('wait for a pause'),
      beforeDestroy: step('record the usage'),
      onFault: (error, action) => faults.push({ error, action }),
    });
  }

  it('come in order', async () => {
    await endingOf().run();
    expect(steps).toEqual([
      'wait for the VM',
      'wait for a pause',
      'stop',
      'save the agent',
      'save the workspace',
      'read the CPU time',
      'record the usage',
      'destroy the VM',
      'dispose of the agent',
      'finish',
    ]);
    expect(faults).toEqual([]);
  });

  it('save nothing of a sandbox that never ran, and of one whose end is hurried', async () => {
    await endingOf({ hasRun: false }).run();
    const hurried = endingOf();
    hurried.hurry();
    await hurried.run();
    expect(steps.filter((name) => name.startsWith('save'))).toEqual([]);
    expect(steps.filter((name) => name === 'finish')).toHaveLength(2);
  });

  it('no longer wait for what is saved once the end is hurried', async () => {
    const saving = Promise.withResolvers<void>();
    const ending = endingOf({ agentFinish: () => saving.promise });
    const ended = ending.run();
    expect(ending.active).toBe(true);
    await expect.poll(() => steps).toContain('save the workspace');
    expect(steps).not.toContain('destroy the VM');
    ending.hurry();
    await ended;
    expect(steps.at(-1)).toBe('finish');
    expect(ending.active).toBe(false);
    saving.resolve();
  });

  it('go on when one of them fails, which is reported', async () => {
    const failing = ['stop', 'save the agent', 'save the workspace', 'dispose of the agent'];
    await endingOf({ fails: Object.fromEntries(failing.map((name) => [name, broken])) }).run();
    expect(steps.at(-1)).toBe('finish');
    expect(faults).toEqual([
      { error: broken, action: 'record that the sandbox is ending' },
      { error: broken, action: 'save the state of an agent' },
      { error: broken, action: 'save a workspace' },
      { error: broken, action: 'dispose of an agent' },
    ]);
  });

  it('report no label that is missing because the VM is gone', async () => {
    await endingOf({ fails: { stop: new MicrovmError('vm_gone', 'no') } }).run();
    expect(faults).toEqual([]);
    const other = new MicrovmError('internal', 'no');
    await endingOf({ fails: { stop: other } }).run();
    expect(faults).toEqual([{ error: other, action: 'record that the sandbox is ending' }]);
  });

  it('are taken once for all who wait, and again after a failure', async () => {
    const ending = endingOf({ fails: { 'destroy the VM': broken } });
    const both = await Promise.allSettled([ending.run(), ending.run()]);
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(steps.filter((name) => name === 'stop')).toHaveLength(1);
    expect(steps.filter((name) => name === 'destroy the VM')).toHaveLength(3);
    expect(steps).not.toContain('finish');
    await expect(ending.run()).rejects.toBe(broken);
    expect(steps.filter((name) => name === 'stop')).toHaveLength(2);
  });
});
