import { expect, test } from 'vitest';
import { logLine } from './frame-log.ts';

const ERROR = { type: 'error', code: 'llm_unauthorized', message: 'no' } as const;
const MESSAGE = { type: 'message', role: 'assistant', content: 'Done.' } as const;
const TOOL_CALL = {
  type: 'tool_call',
  id: '1',
  name: 'shell',
  arguments: { command: 'ls' },
} as const;

test('logs errors, messages and tool calls of a one-shot agent', () => {
  expect([ERROR, TOOL_CALL, MESSAGE].map((frame) => logLine(frame, 'one_shot'))).toEqual([
    'llm_unauthorized: no\n',
    '> shell {"command":"ls"}\n',
    'Done.\n',
  ]);
});

test('logs only errors of a session', () => {
  expect([ERROR, TOOL_CALL, MESSAGE].map((frame) => logLine(frame, 'session'))).toEqual([
    'llm_unauthorized: no\n',
    undefined,
    undefined,
  ]);
});
