import { expect, it } from 'vitest';
import { CoreHarness } from '../../test/core-harness.ts';
import { MemoryHost } from '../../test/memory-host.ts';
import { placement } from '../../test/placement.ts';

const NEVER = new AbortController().signal;

it('begins the restore of another tenant at once, and of the pool, however many one tenant waits for', async () => {
  const host = new MemoryHost();
  const core = new CoreHarness(host, { pool: { standard: 1 }, yieldMs: { alone: 5, shared: 5 } });
  const gate = Promise.withResolvers<void>();
  host.gate = gate.promise;
  const create = (tenant_id: string) => core.creator.create(placement({ tenant_id }), NEVER);
  const greedy = Array.from({ length: 8 }, () => create('usr_a'));
  await expect.poll(() => host.restoring).toBe(3);
  const other = create('usr_b');
  await expect.poll(() => host.restoring).toBe(4);
  const owners = () => host.requests.map(({ owner }) => owner);
  expect(owners()).toEqual(['usr_a', 'usr_a', 'usr_a', 'usr_b']);
  await core.keepPoolWhile(async () => {
    await expect.poll(() => host.restoring).toBe(5);
    expect(owners().at(-1)).toBeUndefined();
    gate.resolve();
    await Promise.all([...greedy, other]);
  });
});
