import type { WorkerSandbox } from '@svc/contract';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { EventQueue } from './event-queue.ts';

function record(vm_id: string, revision: number): WorkerSandbox {
  return {
    vm_id,
    generation: 1,
    revision,
    tenant_id: 'usr_a',
    template: 'standard',
    state: 'running',
    vcpu: 1,
    cpu_fraction: 1,
    memory_mib: 1,
    disk_mib: 1,
    rootfs: '',
    host_port: 22,
    endpoint: '',
    created_at: '2026-01-01T00:00:00.000Z',
    active_connections: 0,
    cpu_seconds: 0,
  };
}

describe('EventQueue', () => {
  it('keeps the latest record of each sandbox, and records queued while a batch is being sent', () => {
    const queue = new EventQueue(new ManualClock());
    queue.push(record('a', 1));
    queue.push(record('b', 1));
    queue.push(record('a', 2));
    const batch = queue.batch();
    expect(batch.body.map(({ vm_id, revision }) => [vm_id, revision])).toEqual([
      ['b', 1],
      ['a', 2],
    ]);
    queue.push(record('b', 2));
    batch.acknowledge();
    expect(queue.batch().body).toMatchObject([{ vm_id: 'b', revision: 2 }]);
  });

  it('is bounded and drops the oldest records', () => {
    const queue = new EventQueue(new ManualClock());
    for (let index = 0; index < 10_005; index += 1) queue.push(record(`vm_${index}`, 1));
    expect(queue.size).toBe(10_000);
    const batch = queue.batch().body;
    expect(batch[0]?.vm_id).toBe('vm_5');
    expect(batch.length).toBe(500);
  });

  it('makes an end older while it waits', () => {
    const clock = new ManualClock();
    const queue = new EventQueue(clock);
    queue.push({ ...record('a', 1), state: 'destroyed', end_age_ms: 5 });
    queue.push(record('b', 1));
    clock.advance(60_000.3);
    const [ended, live] = queue.batch().body;
    expect(ended).toMatchObject({ vm_id: 'a', end_age_ms: 60_005 });
    expect(live).not.toHaveProperty('end_age_ms');
    clock.advance(1_000);
    expect(queue.batch().body[0]).toMatchObject({ end_age_ms: 61_005 });
  });
});
