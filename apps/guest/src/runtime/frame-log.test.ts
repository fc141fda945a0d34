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

test('the output of a one-shot agent is logged, with what it did', () => {
  expect([ERROR, TOOL_CALL, MESSAGE].map((frame) => logLine(frame, 'one_shot'))).toEqual([
    'llm_unauthorized: no\n',
    '> shell {"command":"ls"}\n',
    'Done.\n',
  ]);
});

test('of a session only failures are', () => {
  expect([ERROR, TOOL_CALL, MESSAGE].map((frame) => logLine(frame, 'session'))).toEqual([
    'llm_unauthorized: no\n',
    undefined,
    undefined,
  ]);
});
