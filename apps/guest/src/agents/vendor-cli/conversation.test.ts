import { describe, expect, test } from 'vitest';
import { formatConversation, parseConversation } from './conversation.ts';

const ID = '01a200e7-b583-7ed2-a7e9-faf189fa3e44';

describe('a conversation', () => {
  test('is parsed from its serialised form', () => {
    const transcript = { path: '2026/01/rollout.jsonl', gzip: 'H4sI' };
    for (const conversation of [{ id: ID }, { id: ID, transcript }]) {
      expect(parseConversation(formatConversation(conversation))).toEqual(conversation);
    }
    expect(parseConversation(formatConversation(undefined))).toBeUndefined();
    expect(parseConversation(undefined)).toBeUndefined();
  });

  test.each(['', 'no JSON', '[]', '7', '{"id":7}', '{"id":"--dangerous"}', `{"id":"${ID}/.."}`])(
    'is not parsed from %j',
    (text) => {
      expect(parseConversation(text)).toBeUndefined();
    },
  );

  test.each(['/etc/cron.jsonl', '../x.jsonl', 'a/../../x.jsonl', '..', '', 'a/passwd'])(
    'loses a transcript with the path %j',
    (path) => {
      const text = JSON.stringify({ id: ID, transcript: { path, gzip: 'H4sI' } });
      expect(parseConversation(text)).toEqual({ id: ID });
    },
  );
});
