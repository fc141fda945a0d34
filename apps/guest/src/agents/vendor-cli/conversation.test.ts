import { describe, expect, test } from 'vitest';
import { conversationIn, conversationText } from './conversation.ts';

const ID = '01a200e7-b583-7ed2-a7e9-faf189fa3e44';

describe('a conversation', () => {
  test('is read as it was written', () => {
    const transcript = { path: '2026/01/rollout.jsonl', gzip: 'H4sI' };
    for (const conversation of [{ id: ID }, { id: ID, transcript }]) {
      expect(conversationIn(conversationText(conversation))).toEqual(conversation);
    }
    expect(conversationIn(conversationText(undefined))).toBeUndefined();
    expect(conversationIn(undefined)).toBeUndefined();
  });

  test.each(['', 'no JSON', '[]', '7', '{"id":7}', '{"id":"--dangerous"}', `{"id":"${ID}/.."}`])(
    'is not %j',
    (text) => {
      expect(conversationIn(text)).toBeUndefined();
    },
  );

  test.each(['/etc/cron.jsonl', '../x.jsonl', 'a/../../x.jsonl', '..', '', 'a/passwd'])(
    'has no transcript at %j',
    (path) => {
      const text = JSON.stringify({ id: ID, transcript: { path, gzip: 'H4sI' } });
      expect(conversationIn(text)).toEqual({ id: ID });
    },
  );
});
