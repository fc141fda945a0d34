import { expect, test } from 'vitest';
import { EventData } from './event-data.ts';

/** The data of each event in a stream that arrives in chunks of `size` bytes, and of the event that is not complete. */
function eventsIn(stream: string, size: number): string[] {
  const events = [''];
  const bytes = Buffer.from(stream);
  const data = new EventData(
    (piece) => {
      expect(piece.length).toBeGreaterThan(0);
      events.push(`${events.pop()}${piece}`);
    },
    () => events.push(''),
  );
  for (let at = 0; at < bytes.length; at += size) data.push(bytes.subarray(at, at + size));
  return events;
}

test.each([1, 2, 3, 5, 7, 1000])('the data of events is found in chunks of %i bytes', (size) => {
  const lines = [
    'event: first',
    'data: {"x":1}',
    '',
    ': a comment, data: no',
    'data:2\r',
    'data:3\r',
    '\r',
    'data:',
    'data:4',
    '',
    'datax: no',
    'data',
    'data no',
    'xdata: no',
    ' data: no',
    '',
    '',
    'data: and',
    'id: 5',
    'data: more',
  ];
  expect(eventsIn(lines.join('\n'), size)).toEqual([
    ' {"x":1}',
    '2\r3\r',
    '4',
    '',
    '',
    ' and more',
  ]);
});
