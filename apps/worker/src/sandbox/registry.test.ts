import { LIMITS } from '@svc/contract';
import { beforeEach, expect, test } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { ManualClock } from '../../test/manual-clock.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';
import { SandboxRegistry } from './registry.ts';
import type { Sandbox } from './sandbox.ts';

const NEVER = new AbortController().signal;
let clock: ManualClock;
let registry: SandboxRegistry;
let core: CoreHarness;

beforeEach(() => {
  clock = new ManualClock();
  core = new CoreHarness(new MemoryHost(), { clock });
  registry = new SandboxRegistry(clock);
});

const create = () => core.creator.create(placement(), NEVER);
/** A sandbox that has ended, as far as a registry sees it. */
const ended = (id: string, endedAt: number) =>
  ({ id, isLive: false, state: 'destroyed', endedAt }) as unknown as Sandbox;

test('a sandbox is found until it is removed, and only it is', async () => {
  const [one, other] = [await create(), await create()];
  registry.add(one);
  expect(registry.find(one.id)).toBe(one);
  expect(registry.get(one.id)).toBe(one);
  expect(registry.find(other.id)).toBeUndefined();
  expect(() => registry.get(other.id)).toThrow(
    expect.objectContaining({ code: 'sandbox_not_found' }),
  );
  registry.remove(other);
  registry.remove({ id: one.id } as Sandbox);
  expect(registry.all()).toEqual([one]);
  registry.remove(one);
  expect(registry.all()).toEqual([]);
});

test('a generation replaces an earlier one, and comes last', () => {
  const [old, next] = [ended('a', 0), ended('a', 0)];
  for (const sandbox of [old, ended('b', 0), next]) registry.add(sandbox);
  expect(registry.all().map(({ id }) => id)).toEqual(['b', 'a']);
  expect(registry.find('a')).toBe(next);
});

test('sandboxes are counted by state, and live ones listed', async () => {
  const [one, paused, gone] = [await create(), await create(), await create()];
  for (const sandbox of [one, paused, gone]) registry.add(sandbox);
  await paused.power.pause();
  await gone.end('deleted');
  expect(registry.countByState()).toEqual({
    creating: 0,
    configuring: 0,
    booting: 0,
    running: 1,
    paused: 1,
    stopping: 0,
    destroyed: 1,
  });
  expect(registry.live()).toEqual([one, paused]);
});

test('an ended sandbox is kept for a while, a live one for good', async () => {
  const live = await create();
  registry.add(live);
  registry.add(ended('gone', clock.monotonic()));
  clock.stepWall(24 * 3_600_000);
  clock.advance(LIMITS.destroyedRecordSeconds * 1000);
  registry.sweep();
  expect(registry.all()).toHaveLength(2);
  clock.advance(1);
  registry.sweep();
  expect(registry.all()).toEqual([live]);
});

test('of very many ended sandboxes the last ones are kept', () => {
  for (let count = 0; count < 10_002; count += 1) {
    registry.add(ended(`vm_${count}`, clock.monotonic() - (count % 2 === 0 ? count : 0)));
  }
  registry.sweep();
  const kept = registry.all();
  expect(kept).toHaveLength(10_000);
  expect(registry.find('vm_10000')).toBeUndefined();
  expect(registry.find('vm_9998')).toBeUndefined();
  expect(registry.find('vm_9996')).toBeDefined();
});
