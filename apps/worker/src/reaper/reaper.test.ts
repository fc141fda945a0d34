import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import type { SandboxAgent } from '../sandbox/agent.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

const NEVER = new AbortController().signal;
let clock: ManualClock;
let host: MemoryHost;
let core: CoreHarness;

beforeEach(() => {
  clock = new ManualClock();
  host = new MemoryHost();
  core = new CoreHarness(host, { clock });
});

function create(changes: Parameters<typeof placement>[0] = {}): Promise<Sandbox> {
  const created_at = new Date(clock.wall()).toISOString();
  return core.creator.create(placement({ created_at, ...changes }), NEVER);
}

async function passAfter(seconds: number): Promise<void> {
  clock.advance(seconds * 1000);
  core.reaper.pass();
  await expect.poll(() => core.registry.all().some((one) => one.isEnding)).toBe(false);
}

function agentRecording(frames: unknown[]): SandboxAgent {
  const nothing = async () => undefined;
  return {
    announce: async (frame) => frames.push(frame),
    updateConfig: nothing,
    readLog: async () => ({ bytes: Buffer.alloc(0), totalBytes: 0 }),
    beforePause: nothing,
    finish: nothing,
    dispose: nothing,
    release: nothing,
  };
}

describe('the reaper', () => {
  it('ends an idle sandbox in the first pass after its timeout', async () => {
    const sandbox = await create({ idle_timeout_seconds: 30 });
    await passAfter(29.999);
    expect(sandbox.state).toBe('running');
    await passAfter(0.001);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'idle_timeout' });
  });

  it('restarts the idle timeout when connections and work end', async () => {
    const sandbox = await create({ idle_timeout_seconds: 30 });
    const detach = sandbox.connections.attach({ close: () => undefined });
    const endWork = sandbox.activity.begin();
    await passAfter(100);
    detach();
    detach();
    await passAfter(100);
    expect(sandbox.state).toBe('running');
    endWork();
    await passAfter(29);
    expect(sandbox.state).toBe('running');
    await passAfter(1);
    expect(sandbox.state).toBe('destroyed');
  });

  it('keeps a paused sandbox until its lifetime ends', async () => {
    const sandbox = await create({ idle_timeout_seconds: 5, max_lifetime_seconds: 1000 });
    await sandbox.power.pause();
    await passAfter(500);
    expect(sandbox.state).toBe('paused');
    await sandbox.power.resume();
    await passAfter(4);
    expect(sandbox.state).toBe('running');
    await sandbox.power.pause();
    await passAfter(496);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'max_lifetime' });
  });

  it('warns attached clients once, then ends a busy sandbox at its lifetime', async () => {
    const frames: unknown[] = [];
    const closes: [number, string][] = [];
    const prepare = () => ({ start: async () => agentRecording(frames), abandon: async () => {} });
    core = new CoreHarness(host, { clock, agents: { prepare } });
    const sandbox = await create({ max_lifetime_seconds: 60, agent: ONE_SHOT });
    sandbox.connections.attach({ close: (code, reason) => closes.push([code, reason]) });
    await passAfter(49);
    expect(frames).toEqual([]);
    await passAfter(1);
    await passAfter(5);
    expect(frames).toEqual([{ type: 'system', event: 'cancel', reason: 'timeout' }]);
    await passAfter(5);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'max_lifetime' });
    expect(closes).toEqual([[1001, 'sandbox destroyed']]);
  });

  it('ignores a step of the wall clock', async () => {
    const sandbox = await create({ max_lifetime_seconds: 100, idle_timeout_seconds: 7200 });
    clock.stepWall(3_600_000);
    await passAfter(99);
    expect(sandbox.state).toBe('running');
    clock.stepWall(-7_200_000);
    await passAfter(1);
    expect(sandbox.state).toBe('destroyed');
  });

  it('repeats a teardown that failed', async () => {
    const sandbox = await create();
    host.vmOf(sandbox.id).faults.destroys = 3;
    await expect(sandbox.end('deleted')).rejects.toThrow();
    await passAfter(10);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'deleted' });
  });

  it('forgets destroyed sandboxes after fifteen minutes', async () => {
    const sandbox = await create();
    await sandbox.end('deleted');
    await passAfter(899);
    expect(core.registry.find(sandbox.id)).toBe(sandbox);
    await passAfter(2);
    expect(core.registry.find(sandbox.id)).toBeUndefined();
  });

  it('stops when its signal aborts', async () => {
    const pass = vi.spyOn(core.reaper, 'pass');
    const stop = new AbortController();
    const run = core.reaper.run(stop.signal);
    stop.abort();
    await run;
    expect(pass).not.toHaveBeenCalled();
    await core.reaper.run(stop.signal);
    expect(pass).not.toHaveBeenCalled();
  });

  it('leaves a sandbox alone whose VM is held, until it is released', async () => {
    const sandbox = await create({ idle_timeout_seconds: 30 });
    await sandbox.power.hold();
    await passAfter(100);
    expect([sandbox.state, sandbox.endReason]).toEqual(['running', undefined]);
    await sandbox.power.release();
    await passAfter(0);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'idle_timeout' });
  });

  it('reports a teardown that fails, and does not begin it again while it runs', async () => {
    const sandbox = await create({ idle_timeout_seconds: 30 });
    host.vmOf(sandbox.id).faults.destroys = 3;
    const end = vi.spyOn(sandbox, 'end');
    clock.advance(30_000);
    core.reaper.pass();
    core.reaper.pass();
    expect(end).toHaveBeenCalledTimes(1);
    await expect.poll(() => core.faults).toHaveLength(1);
    expect(sandbox.endReason).toBe('idle_timeout');
  });

  it('reports a warning that fails, and ends the sandbox all the same', async () => {
    const sandbox = await create({ max_lifetime_seconds: 60 });
    sandbox.connections.attach({ close: () => undefined });
    vi.spyOn(sandbox, 'cancel').mockRejectedValue(new Error('no agent'));
    await passAfter(60);
    expect(sandbox.record()).toMatchObject({ state: 'destroyed', end_reason: 'max_lifetime' });
    expect(core.faults).toMatchObject([{ message: 'no agent' }]);
  });
});
