import type { SandboxState } from '@svc/contract';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { ONE_SHOT, placement } from '../../test/placement.ts';
import { assignmentOf } from './assignment.ts';
import type { Progress } from './labels.ts';
import { recordOf } from './record.ts';
import { UsageCounter } from './usage-counter.ts';

const CREATED = '2026-01-01T00:00:00.000Z';
const RAN = '2026-01-01T00:00:01.000Z';
const OBSERVED = {
  vcpu: 1,
  cpu_fraction: 1,
  memory_mib: 512,
  disk_mib: 1024,
  rootfs: 'i',
  host_port: 22,
  endpoint: '198.18.0.1:22',
  active_connections: 0,
  cpu_seconds: 2,
};

const recordIn = (state: SandboxState, progress: Partial<Progress> = {}, agent?: typeof ONE_SHOT) =>
  recordOf(
    assignmentOf(
      placement({ vm_id: 'vm_1', created_at: CREATED, ...(agent === undefined ? {} : { agent }) }),
      new ManualClock(),
    ),
    { state, revision: 4, ...progress },
    OBSERVED,
  );

test('a record says what the sandbox is, and keeps to itself how it is metered', () => {
  const progress: Partial<Progress> = {
    running_at: RAN,
    metered_from: { cpu_ms: 1, at_ms: 2 },
    workspace_loaded: true,
    end_reason: 'deleted',
  };
  expect(recordIn('stopping', progress)).toEqual({
    vm_id: 'vm_1',
    generation: 1,
    tenant_id: 'usr_a',
    created_at: CREATED,
    template: 'standard',
    state: 'stopping',
    revision: 4,
    running_at: RAN,
    end_reason: 'deleted',
    ...OBSERVED,
  });
});

test('a record in quarantine says how the sandbox was placed, for the ledger that does not know it', () => {
  const record = recordIn('running', { running_at: RAN, quarantined: true });
  expect(record.placement).toEqual(placement().placement);
  expect(record).not.toHaveProperty('quarantined');
  expect(recordIn('running', { quarantined: false })).not.toHaveProperty('placement');
});

describe('the status of an agent', () => {
  test.each<[string, SandboxState, Partial<Progress>, object]>([
    ['that has not started', 'booting', {}, {}],
    ['that runs', 'running', { running_at: RAN }, { agent_status: 'running' }],
    ['that its sandbox outlives', 'stopping', { running_at: RAN }, { agent_status: 'running' }],
    ['that its sandbox cut short', 'destroyed', { running_at: RAN }, { agent_status: 'failed' }],
    [
      'that exited well',
      'running',
      { running_at: RAN, agent_exit_code: 0 },
      { agent_status: 'completed', agent_exit_code: 0 },
    ],
    [
      'that exited with 3',
      'destroyed',
      { running_at: RAN, agent_exit_code: 3 },
      { agent_status: 'failed', agent_exit_code: 3 },
    ],
  ])('%s', (_which, state, progress, expected) => {
    const { agent_status, agent_exit_code } = recordIn(state, progress, ONE_SHOT);
    const shown = {
      ...(agent_status === undefined ? {} : { agent_status }),
      ...(agent_exit_code === undefined ? {} : { agent_exit_code }),
    };
    expect(shown).toEqual(expected);
  });

  test('is not part of a record without one', () => {
    expect(recordIn('running', { running_at: RAN })).not.toHaveProperty('agent_status');
  });
});

test('what an agent uses is added up, and read as a copy', () => {
  const usage = new UsageCounter();
  const before = usage.counts;
  usage.addTokens({ input_tokens: 2, output_tokens: 3 });
  usage.addTokens({ input_tokens: 20, output_tokens: 30 });
  usage.addToolCall();
  expect(before).toEqual({ input_tokens: 0, output_tokens: 0, tool_calls: 0 });
  expect(usage.counts).toEqual({ input_tokens: 22, output_tokens: 33, tool_calls: 1 });
});
