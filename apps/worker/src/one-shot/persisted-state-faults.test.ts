import { expect, it } from 'vitest';
import { ManualClock } from '../../test/manual-clock.ts';
import { PersistedState } from './persisted-state.ts';

it('an endpoint that refuses every state is reported once in a while, not for each', async () => {
  const faults: unknown[] = [];
  let settled = 0;
  const states = new PersistedState({
    egress: {
      request: async () => {
        throw Object.assign(new Error('refused'), { code: 'egress_refused' });
      },
    },
    url: 'https://10.0.0.1/',
    credentials: { authorization: undefined, known: Promise.resolve() },
    sessionId: undefined,
    vmId: 'vm_1',
    agent: 'codex',
    clock: new ManualClock(),
    onFault: (error) => faults.push(error),
  });
  for (let turn = 0; turn < 100; turn += 1) {
    states.save('state', () => {
      settled += 1;
    });
    await states.idle();
  }
  expect(settled).toBe(100);
  expect(faults).toEqual([expect.objectContaining({ message: 'refused' })]);
});
