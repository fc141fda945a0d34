import { PassThrough } from 'node:stream';
import type { SessionFrame } from '@svc/sdk';
import { expect, test } from 'vitest';
import { callText, resultText } from './tool-text.ts';
import { stripControlCharacters, Transcript } from './transcript.ts';

function shown(...frames: object[]) {
  const answers = new PassThrough();
  const notes = new PassThrough();
  const stream = (out: PassThrough) => out as unknown as NodeJS.WriteStream;
  const transcript = new Transcript(stream(answers), stream(notes));
  for (const frame of frames) transcript.show(frame as SessionFrame);
  return { answers: String(answers.read() ?? ''), notes: String(notes.read() ?? '') };
}

test('prints the text of the agent on one stream and everything else on the other', () => {
  const { answers, notes } = shown(
    { type: 'ready', agent: 'deictic', model: 'm', resumed: true },
    { type: 'task_started', id: '1' },
    { type: 'text_delta', data: 'Let me ' },
    { type: 'text_delta', data: 'look.' },
    { type: 'message', role: 'assistant', content: 'Let me look.' },
    { type: 'tool_call', id: 'a', name: 'shell', arguments: { command: 'ls' } },
    { type: 'tool_result', id: 'a', content: 'one\ntwo\n', is_error: false },
    { type: 'usage', input_tokens: 10, output_tokens: 2 },
    { type: 'usage', input_tokens: 5, output_tokens: 1 },
    { type: 'message', role: 'assistant', content: 'Two files.' },
    { type: 'task_completed', id: '1', status: 'completed', result: 'Two files.' },
  );
  expect(answers).toBe('Let me look.\nTwo files.\n');
  expect(notes).toBe(
    'connected to deictic on m, resumed\n→ shell ls\n  one\n  two\ncompleted · 15 tokens in, 3 out\n',
  );
});

test('prints the result of a task without text, and a failure as a note', () => {
  expect(
    shown({ type: 'task_completed', id: '1', status: 'completed', result: 'Done.' }).answers,
  ).toBe('Done.\n');
  const { answers, notes } = shown(
    { type: 'error', code: 'llm_unauthorized', message: 'No.' },
    { type: 'task_completed', id: '1', status: 'failed', result: 'why' },
    { type: 'system', event: 'config_update', keys: ['A', 'B'] },
    { type: 'system', event: 'cancel', reason: 'timeout' },
    { type: 'ready', agent: 'deictic', model: 'm', resumed: true, unanswered: ['1'] },
  );
  expect(answers).toBe('');
  expect(notes).toBe(
    'llm_unauthorized: No.\nfailed: why\nnew secret values are in use: A, B\nthe service asked the agent to stop: timeout\nconnected to deictic on m, resumed\nthe sandbox was lost; the session goes on in another, after its last saved task\n',
  );
});

test('removes control characters from all text of a sandbox, even if they are split across frames', () => {
  const evil = '\u001b]0;title\u0007\u001b[2J\u009b31mred\r\bx\ty\n';
  expect(stripControlCharacters(evil)).toBe(']0;title[2J31mredx\ty\n');
  const { answers, notes } = shown(
    { type: 'text_delta', data: 'a\u001b' },
    { type: 'text_delta', data: '[2Jb' },
    { type: 'tool_call', id: 'a', name: 'sh\u001b[1mell', arguments: { command: '\u001b[2J' } },
    { type: 'tool_result', id: 'a', content: '\u001b[2J', is_error: true },
    { type: 'stdout', data: '\u001b[2J' },
    { type: 'stderr', data: '\u001b[2J' },
    { type: 'error', code: '\u001b', message: '\u001b' },
    { type: 'ready', agent: '\u001b', model: '\u001b', resumed: false },
  );
  expect(answers + notes).not.toContain('\u001b');
});

test('shortens long tool calls and results', () => {
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`).join('\n');
  expect(resultText(`${lines}\n`).split('\n')).toHaveLength(9);
  expect(resultText(lines)).toContain('… 12 more lines');
  expect(callText('write_file', { path: '/a', content: 'x'.repeat(9_000) })).toBe('write_file /a');
  expect(callText('shell', { command: ['ls', '-l'] })).toBe('shell ls -l');
  expect(callText('other', { a: 1 })).toBe('other {"a":1}');
  expect(callText('other', null)).toBe('other');
  expect(callText('shell', { command: 'x'.repeat(9_000) }).length).toBeLessThan(200);
});
