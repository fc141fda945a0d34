import type { AgentFrame } from '@svc/contract';
import { expect, test } from 'vitest';
import { TurnFrames } from '../vendor-cli/turn-frames.ts';
import { framesOfEnd, framesOfStart } from './items.ts';

function told(...items: Record<string, unknown>[]): AgentFrame[] {
  const sent: AgentFrame[] = [];
  const frames = new TurnFrames({ emit: (frame) => void sent.push(frame) });
  for (const item of items) {
    if (item.status === 'inProgress') framesOfStart(item, frames);
    else framesOfEnd(item, frames);
  }
  return sent;
}

test('a command that fails is an error with its output', () => {
  const item = { type: 'commandExecution', id: 'c', command: 'false', cwd: '/work' };
  const end = { ...item, status: 'failed', exitCode: 1, aggregatedOutput: 'no' };
  expect(told({ ...item, status: 'inProgress' }, end)).toEqual([
    { type: 'tool_call', id: 'c', name: 'shell', arguments: { command: 'false', cwd: '/work' } },
    { type: 'tool_result', id: 'c', content: 'no', is_error: true },
  ]);
});

test('a patch shows what it changes', () => {
  const changes = [{ path: '/work/a', kind: { type: 'add' }, diff: 'x' }];
  const item = { type: 'fileChange', id: 'p', changes, status: 'completed' };
  expect(told(item)).toEqual([
    { type: 'tool_call', id: 'p', name: 'apply_patch', arguments: { changes } },
    { type: 'tool_result', id: 'p', content: 'completed', is_error: false },
  ]);
});

test('a tool of an MCP server gives its content, or its error', () => {
  const item = { type: 'mcpToolCall', id: 'm', server: 'files', tool: 'read', arguments: { a: 1 } };
  const content = [{ type: 'text', text: 'hi' }];
  const [call, result] = told({ ...item, status: 'completed', result: { content }, error: null });
  expect(call).toMatchObject({ name: 'files.read', arguments: { a: 1 } });
  expect(result).toMatchObject({ content: JSON.stringify(content), is_error: false });
  const failed = told({ ...item, status: 'failed', error: { message: 'gone' } });
  expect(failed[1]).toMatchObject({ content: 'gone', is_error: true });
});

test('what has no frame has none', () => {
  expect(told({ type: 'reasoning', id: 'r' }, { type: 'of tomorrow', id: 'x' })).toEqual([]);
});
