import type { AgentFrame } from '@svc/contract';
import { expect, test } from 'vitest';
import { TurnFrames } from './turn-frames.ts';

function turn() {
  const sent: AgentFrame[] = [];
  return { sent, frames: new TurnFrames({ emit: (frame) => void sent.push(frame) }) };
}

test('emits one result per call, and none without a call', () => {
  const { sent, frames } = turn();
  frames.toolResult('unknown', 'x', false);
  frames.toolCall('a', 'Bash', { command: 'true' });
  frames.toolCall('a', 'Bash', { command: 'true' });
  frames.toolResult('a', 'first', false);
  frames.toolResult('a', 'second', false);
  frames.toolCall('b', 'Bash', undefined);
  frames.closeCalls('over', true);
  expect(sent).toEqual([
    { type: 'tool_call', id: 'a', name: 'Bash', arguments: { command: 'true' } },
    { type: 'tool_result', id: 'a', content: 'first', is_error: false },
    { type: 'tool_call', id: 'b', name: 'Bash', arguments: {} },
    { type: 'tool_result', id: 'b', content: 'over', is_error: true },
  ]);
});

test('keeps frames below the line limit of the link for any output of the CLI', () => {
  const { sent, frames } = turn();
  const huge = '\u0000'.repeat(3_000_000);
  frames.textDelta(huge);
  frames.message(huge);
  frames.toolCall('a', 'Write', { content: huge });
  frames.toolResult('a', huge, false);
  const sizes = sent.map((frame) => JSON.stringify(frame).length);
  expect(sizes).toHaveLength(4);
  expect(Math.max(...sizes)).toBeLessThan(8 * 1024 * 1024);
});
