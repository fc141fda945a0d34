import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readGuestMessage } from './guest-messages.ts';

describe('readGuestMessage', () => {
  const read = (value: unknown) => readGuestMessage(Buffer.from(JSON.stringify(value)));

  it('keeps only the fields of a frame’s schema', () => {
    const frame = { type: 'text_delta', data: 'x', seq: 99, ts: 'then', owner: true };
    expect(read({ type: 'frame', n: 1, frame })).toMatchObject({
      n: 1,
      frame: { type: 'text_delta', data: 'x' },
    });
    expect(Object.keys((read({ type: 'frame', n: 1, frame }) as { frame: object }).frame)).toEqual([
      'type',
      'data',
    ]);
  });

  it.each([
    ['a usage frame', { type: 'usage', input_tokens: 1, output_tokens: 1 }],
    ['a cancel frame', { type: 'system', event: 'cancel', reason: 'timeout' }],
    ['a config_update frame', { type: 'system', event: 'config_update', keys: [] }],
    ['a ready frame', { type: 'ready', agent: 'a', model: 'm', resumed: false }],
    ['a pong frame', { type: 'pong' }],
    ['a text_delta without data', { type: 'text_delta' }],
    ['a text_delta with a number as data', { type: 'text_delta', data: 7 }],
    ['a frame of an unknown type', { type: 'constructor' }],
    ['a number', 7],
    ['null', null],
  ])('drops %s in the place of an agent’s frame', (_what, frame) => {
    expect(read({ type: 'frame', n: 1, frame })).toMatchObject({ n: 1, frame: undefined });
  });

  it.each([
    ['a number below one', { type: 'frame', n: 0, frame: {} }],
    ['a number given as a string', { type: 'frame', n: '1', frame: {} }],
    ['a fractional number', { type: 'state', n: 1.5, conversation: '', files: false }],
    ['a number beyond the safe integers', { type: 'exited', n: 2 ** 60, exitCode: 0 }],
    ['an unknown type', { type: 'toString', n: 1 }],
    ['no fields', {}],
    ['an array in place of an object', []],
  ])('rejects a message with %s', (_what, value) => {
    expect(read(value)).toBeUndefined();
  });

  it.each([
    ['text other than JSON', 'hello'],
    ['truncated JSON', '{"type":"frame"'],
    ['invalid UTF-8', '\xff\xfe'],
    [
      'deeply nested JSON',
      `{"type":"frame","n":1,"frame":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    ],
    [
      'JSON of very many values',
      `{"type":"frame","n":1,"frame":{"type":"tool_call","id":"x","name":"x","arguments":[${'{},'.repeat(70_000)}0]}}`,
    ],
  ])('rejects %s', (_what, text) => {
    expect(readGuestMessage(Buffer.from(text, 'latin1'))).toBeUndefined();
  });

  it('never throws for arbitrary input', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        readGuestMessage(Buffer.from(text));
      }),
    );
  });
});
