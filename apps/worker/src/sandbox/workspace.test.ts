import { ServiceError } from '@svc/contract';
import { MicrovmError } from '@svc/microvm';
import { beforeEach, describe, expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import { silentLogger } from '../../test/silent-logger.ts';
import { adoptVms } from '../adoption/adopt.ts';
import type { AgentStarter } from '../agents/agent-starter.ts';
import { runCommand } from '../exec/run-command.ts';
import type { Sandbox } from './sandbox.ts';
import type { MountedWorkspace } from './workspace.ts';

const NEVER = new AbortController().signal;
const SCOPE = { app_id: 'a', capset_id: 'c' };

/** A workspace whose load the test settles. Records its calls. */
class ScriptedWorkspace implements MountedWorkspace {
  readonly calls: string[] = [];
  readonly loaded = Promise.withResolvers<void>();
  pauseFailure: Error | undefined;

  async load(signal: AbortSignal): Promise<void> {
    this.calls.push('load');
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => aborted.reject(signal.reason));
    await Promise.race([this.loaded.promise, aborted.promise]);
  }

  start(): void {
    this.calls.push('start');
  }

  async beforePause(): Promise<void> {
    this.calls.push('beforePause');
    if (this.pauseFailure !== undefined) throw this.pauseFailure;
  }

  async finish(): Promise<void> {
    this.calls.push('finish');
  }

  async release(): Promise<void> {
    this.calls.push('release');
  }
}

let host: MemoryHost;
let workspace: ScriptedWorkspace;
let core: CoreHarness;
let agentStarts: number;

const agents: AgentStarter = {
  prepare: () => ({
    start: async () => {
      agentStarts += 1;
      throw new MicrovmError('boot_failed', 'this test has no agent');
    },
    abandon: async () => undefined,
  }),
};

function request(changes: Parameters<typeof placement>[0] = {}) {
  const made = placement(changes);
  return { ...made, placement: { ...made.placement, workspace: SCOPE } };
}

const create = (changes?: Parameters<typeof placement>[0]) =>
  core.creator.create(request(changes), NEVER);

const run = (sandbox: Sandbox) => runCommand(sandbox, { command: 'true' }, () => undefined, NEVER);

beforeEach(() => {
  host = new MemoryHost();
  workspace = new ScriptedWorkspace();
  agentStarts = 0;
  core = new CoreHarness(host, { agents, mountWorkspace: () => workspace });
});

describe('a sandbox with a workspace', () => {
  it('is created while the workspace is loaded, and commands wait for it', async () => {
    const sandbox = await create({ idle_timeout_seconds: 1 });
    expect(sandbox.state).toBe('running');
    expect(sandbox.activity.idleSince).toBeUndefined();
    let isDone = false;
    const done = <T>(result: T): T => {
      isDone = true;
      return result;
    };
    const command = run(sandbox).then(done);
    const connected = sandbox.power.runningVm(NEVER).then(done);
    const paused = sandbox.power.pause();
    await new Promise(setImmediate);
    expect([isDone, sandbox.state, workspace.calls]).toEqual([false, 'running', ['load']]);
    expect(host.vmOf(sandbox.id).labels).not.toHaveProperty('workspace_loaded');
    workspace.loaded.resolve();
    await paused;
    await connected;
    expect(await command).toMatchObject({ exit_code: 0 });
    expect(workspace.calls).toEqual(['load', 'start', 'beforePause']);
    expect(host.vmOf(sandbox.id).labels).toMatchObject({ workspace_loaded: true });
    await sandbox.end('deleted');
    expect(workspace.calls.at(-1)).toBe('finish');
  });

  it('ends when the workspace cannot be loaded, and says so to those who wait', async () => {
    const sandbox = await create();
    const commands = [run(sandbox), run(sandbox)];
    const outcomes = Promise.allSettled(commands);
    workspace.loaded.reject(new ServiceError('workspace_unavailable'));
    expect(await outcomes).toMatchObject(
      commands.map(() => ({ status: 'rejected', reason: { code: 'workspace_unavailable' } })),
    );
    await expect
      .poll(() => sandbox.record())
      .toMatchObject({ state: 'destroyed', end_reason: 'boot_failed' });
    await expect(run(sandbox)).rejects.toMatchObject({ code: 'workspace_unavailable' });
    expect(host.live).toEqual([]);
  });

  it('starts its agent once the workspace is loaded', async () => {
    const created = create({ agent: ONE_SHOT });
    await expect.poll(() => workspace.calls).toEqual(['load']);
    expect(agentStarts).toBe(0);
    workspace.loaded.resolve();
    await expect(created).rejects.toMatchObject({ code: 'boot_failed' });
    expect(agentStarts).toBe(1);
  });

  it('with an agent is not created when the workspace cannot be loaded', async () => {
    workspace.loaded.reject(new ServiceError('workspace_too_large'));
    await expect(create({ agent: ONE_SHOT })).rejects.toMatchObject({
      code: 'workspace_too_large',
    });
    expect(agentStarts).toBe(0);
    expect(host.live).toEqual([]);
  });

  it('can be deleted while the workspace is loaded', async () => {
    const sandbox = await create();
    const command = run(sandbox);
    command.catch(() => undefined);
    await sandbox.end('deleted');
    await expect(command).rejects.toMatchObject({ code: 'sandbox_not_running' });
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  });

  it('ends when it cannot record that the workspace is loaded: a restart would load it again', async () => {
    const sandbox = await create();
    host.vmOf(sandbox.id).faults.label = new Error('disk full');
    workspace.loaded.resolve();
    await expect.poll(() => sandbox.record()).toMatchObject({ end_reason: 'boot_failed' });
    expect(workspace.calls).not.toContain('start');
  });

  it('goes on running when its workspace cannot be saved before a pause', async () => {
    workspace.loaded.resolve();
    workspace.pauseFailure = new ServiceError('workspace_unavailable');
    const sandbox = await create();
    await expect(sandbox.power.pause()).rejects.toMatchObject({ code: 'workspace_unavailable' });
    expect(sandbox.state).toBe('running');
    expect(await run(sandbox)).toMatchObject({ exit_code: 0 });
  });
});

describe('a worker that starts after a crash', () => {
  /** The sandbox as the next worker process has it. */
  async function adopted(vmId: string): Promise<Sandbox> {
    const survivors = new MemoryHost(host.live);
    workspace = new ScriptedWorkspace();
    core = new CoreHarness(survivors);
    const { registry, pool, capacity, clock } = core;
    await adoptVms(
      {
        microvms: survivors,
        registry,
        pool,
        capacity,
        clock,
        images: () => survivors.images(),
        logger: silentLogger,
        onChange: () => undefined,
        onFault: () => undefined,
        adoptAgent: async () => undefined,
        beforeDestroy: async () => undefined,
        mountWorkspace: () => workspace,
      },
      NEVER,
    );
    return registry.get(vmId);
  }

  it('does not load the workspace again', async () => {
    workspace.loaded.resolve();
    const { id } = await create();
    await expect.poll(() => host.vmOf(id).labels).toMatchObject({ workspace_loaded: true });
    const again = await adopted(id);
    expect(workspace.calls).toEqual(['start']);
    expect(await run(again)).toMatchObject({ exit_code: 0 });
    await again.end('deleted');
    expect(workspace.calls).toEqual(['start', 'finish']);
  });

  it('loads a workspace that was not loaded yet, and commands wait for it', async () => {
    const { id } = await create();
    const again = await adopted(id);
    const command = run(again);
    expect(workspace.calls).toEqual(['load']);
    workspace.loaded.resolve();
    expect(await command).toMatchObject({ exit_code: 0 });
    expect(workspace.calls).toEqual(['load', 'start']);
  });
});
