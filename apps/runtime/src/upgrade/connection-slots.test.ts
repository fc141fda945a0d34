import { expect, test } from 'vitest';
import { ConnectionSlots } from './connection-slots.ts';

const full = expect.objectContaining({ code: 'rate_limited' });

test('bounds handshakes and connections per address and in total', () => {
  const slots = new ConnectionSlots({
    connections: 5,
    connectionsPerAddress: 3,
    handshakesPerAddress: 2,
  });
  const first = slots.take('a');
  const second = slots.take('a');
  expect(() => slots.take('a')).toThrow(full);
  first.settle();
  const third = slots.take('a');
  second.settle();
  expect(() => slots.take('a')).toThrow(full);
  slots.take('b');
  slots.take('c');
  expect(() => slots.take('d')).toThrow(full);
  third.release();
  third.release();
  slots.take('d');
  expect(() => slots.take('e')).toThrow(full);
});
