import { expect, test } from 'vitest';
import { parseAfterSeq } from './after-seq.ts';

test.each([
  ['', undefined],
  ['after_seq=0', 0],
  ['after_seq=7&token=x', 7],
  ['after_seq=007', 7],
  [`after_seq=${Number.MAX_SAFE_INTEGER}`, Number.MAX_SAFE_INTEGER],
])('parses %j as %s', (query, seq) => {
  expect(parseAfterSeq(new URLSearchParams(query))).toBe(seq);
});

test.each([
  ...['-1', 'x', '', '1.5', '1e3', ' 1', '0x1', '99999999999999999', '9007199254740992'],
  '1&after_seq=2',
])('rejects after_seq=%s with validation_failed', (value) => {
  const query = new URLSearchParams(`after_seq=${value}`);
  expect(() => parseAfterSeq(query)).toThrow(
    expect.objectContaining({
      code: 'validation_failed',
      errors: [expect.objectContaining({ path: 'after_seq' })],
    }),
  );
});
