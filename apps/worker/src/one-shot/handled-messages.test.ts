import { expect, it } from 'vitest';
import { HandledMessages } from './handled-messages.ts';

it('keeps only the newest of the messages behind the first one held', () => {
  const handled = new HandledMessages();
  for (let n = 1; n <= 9; n += 1) {
    if (n > 3) handled.hold(n);
    handled.add(n);
  }
  expect(handled.acknowledgeable).toBe(3);
  handled.release(5);
  expect(handled.acknowledgeable).toBe(8);
  handled.release(9);
  expect(handled.acknowledgeable).toBe(9);
});
