import type { AgentFrame } from '@svc/contract';
import { expect, test } from 'vitest';
import { TurnFrames } from '../vendor-cli/turn-frames.ts';
import { framesOfEnd, framesOfStart } from './items.ts';

function framesOf(...items: Record<string, unknown>[]): AgentFrame[] {
  const sent: AgentFrame[] = [];
  const frames = new TurnFrames({ emit: (frame) => void sent.push(frame) });
  for (const item of items) {
    if (item.status === 'inProgress') framesOfStart(item, frames);
    else framesOfEnd(item, frames);
  }
  return sent;
}

test('reports a failed command as an error with its output', () => {
  const item = { type: 'commandExecution', id: 'c', command: 'false', cwd: '/work' };
  const end = { ...item, status: 'failed', exitCode: 1, aggregatedOutput: 'no' };
  expect(framesOf({ ...item, status: 'inProgress' }, end)).toEqual([
    { type: 'tool_call', id: 'c', name: 'shell', arguments: { command: 'false', cwd: '/work' } },
    { type: 'tool_result', id: 'c', content: 'no', is_error: true },
  ]);
});

test('shows the changes of a patch', () => {
  const changes = [{ path: '/work/a', kind: { type: 'add' }, diff: 'x' }];
  const item = { type: 'fileChange', id: 'p', changes, status: 'completed' };
  expect(framesOf(item)).toEqual([
    { type: 'tool_call', id: 'p', name: 'apply_patch', arguments: { changes } },
    { type: 'tool_result', id: 'p', content: 'completed', is_error: false },
  ]);
});

test('shows the content or the error of an MCP tool', () => {
  const item = { type: 'mcpToolCall', id: 'm', server: 'files', tool: 'read', arguments: { a: 1 } };
  const content = [
    { type: 'text', text: 'hi' },
    { type: 'image', data: 'aGk=', mimeType: 'image/png' },
  ];
  const [call, result] = framesOf({
    ...item,
    status: 'completed',
    result: { content },
    error: null,
  });
  expect(call).toMatchObject({ name: 'files.read', arguments: { a: 1 } });
  expect(result).toMatchObject({ content: 'hi\n[image]', is_error: false });
  const failed = framesOf({ ...item, status: 'failed', error: { message: 'gone' } });
  expect(failed[1]).toMatchObject({ content: 'gone', is_error: true });
});

test('shows the tools of the template by the names that an app uses', () => {
  const item = { type: 'mcpToolCall', id: 'm', server: 'svc', tool: 'browser_text', arguments: {} };
  const [call] = framesOf({ ...item, status: 'inProgress' });
  expect(call).toMatchObject({ name: 'browser_text' });
});

test('emits nothing for other items', () => {
  expect(framesOf({ type: 'reasoning', id: 'r' }, { type: 'of tomorrow', id: 'x' })).toEqual([]);
});
