import { expect, test } from 'vitest';
import { faultsOf, logFaults } from './faults.ts';

test('a fault that a guest repeats is logged once a minute for each sandbox', () => {
  const lines: unknown[][] = [];
  const onFault = logFaults({ error: (...line: unknown[]) => void lines.push(line) });
  const error = new Error('no');
  for (const vmId of ['vm_1', 'vm_2']) {
    const fault = faultsOf(vmId, onFault);
    for (let round = 0; round < 100; round += 1) fault(error, 'save a turn of a session');
  }
  expect(lines).toEqual([
    [{ err: error, omitted: 0 }, 'could not save a turn of a session (vm_1)'],
    [{ err: error, omitted: 0 }, 'could not save a turn of a session (vm_2)'],
  ]);
});
