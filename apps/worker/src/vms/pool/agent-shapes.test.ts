import { expect, it } from 'vitest';
import { STANDARD } from '../../../test/memory-host.ts';
import { agentShapes } from './agent-shapes.ts';

it('lists the shapes of agents that differ from the image’s own', () => {
  expect(agentShapes(STANDARD)).toEqual([{ vcpu: 1, memoryMib: 1024 }]);
  expect(agentShapes({ vcpu: 1, memoryMib: 1024 })).toEqual([]);
});
