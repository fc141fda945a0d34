import { beforeEach, describe, expect, test } from 'vitest';
import { type DesktopInput, InputQueue } from './input-queue.ts';

let queue: InputQueue;
let calls: { name: string; input: object; id: string }[];
let dropped: number;
let isSent: boolean;

beforeEach(() => {
  calls = [];
  dropped = 0;
  isSent = true;
  queue = new InputQueue({
    call: (name, input, { id }) => {
      calls.push({ name, input, id });
      return isSent;
    },
    onFull: () => {
      dropped += 1;
    },
  });
});

type Mouse = Extract<DesktopInput, { name: 'mouse' }>['arguments'];
const mouse = (action: Mouse['action'], x: number, more: object = {}) =>
  queue.add({ name: 'mouse', arguments: { action, x, y: 0, ...more } });
const type = (text: string) => queue.add({ name: 'keyboard', arguments: { action: 'type', text } });
const press = (keys: string) =>
  queue.add({ name: 'keyboard', arguments: { action: 'press', keys } });
/** Answers every call, and returns what the calls were. */
function finish(): object[] {
  while (queue.answered(calls.at(-1)?.id));
  return calls.map(({ input }) => input);
}

describe('the input of a page', () => {
  test('is sent one after the other, each once the one before is answered', () => {
    mouse('click', 1);
    mouse('click', 2);
    press('a');
    expect(calls).toHaveLength(1);
    expect(queue.answered('of somebody else')).toBe(false);
    expect(queue.answered(undefined)).toBe(false);
    expect(calls).toHaveLength(1);
    expect(queue.answered(calls[0]?.id)).toBe(true);
    expect(calls).toHaveLength(2);
    expect(queue.answered(calls[0]?.id)).toBe(false);
    finish();
    expect(calls.map(({ name }) => name)).toEqual(['mouse', 'mouse', 'keyboard']);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
  });

  test('is joined while it waits', () => {
    mouse('click', 0);
    mouse('move', 1);
    mouse('move', 2);
    mouse('scroll', 3, { dy: 1 });
    mouse('scroll', 4, { dx: -2, dy: 5 });
    mouse('move', 5);
    type('a');
    type('b');
    press('Return');
    press('ctrl+a');
    type('c');
    expect(finish().slice(1)).toEqual([
      { action: 'move', x: 2, y: 0 },
      { action: 'scroll', x: 4, y: 0, dx: -2, dy: 6 },
      { action: 'move', x: 5, y: 0 },
      { action: 'type', text: 'ab' },
      { action: 'press', keys: 'Return ctrl+a' },
      { action: 'type', text: 'c' },
    ]);
  });

  test('is joined only up to what one call may have', () => {
    mouse('click', 0);
    mouse('scroll', 1, { dy: -30 });
    mouse('scroll', 1, { dy: -30 });
    type('a'.repeat(3_000));
    type('b'.repeat(1_001));
    for (let times = 0; times < 21; times += 1) press('Tab');
    expect(finish().slice(1)).toEqual([
      { action: 'scroll', x: 1, y: 0, dy: -30 },
      { action: 'scroll', x: 1, y: 0, dy: -30 },
      { action: 'type', text: 'a'.repeat(3_000) },
      { action: 'type', text: 'b'.repeat(1_001) },
      { action: 'press', keys: Array(20).fill('Tab').join(' ') },
      { action: 'press', keys: 'Tab' },
    ]);
  });

  test('that is too much is dropped, and the page told', () => {
    for (let x = 0; x < 1_000; x += 1) mouse('click', x);
    expect(dropped).toBe(935);
    expect(finish()).toHaveLength(65);
  });

  test('that waits is forgotten when the connection is lost, and so is the answer', () => {
    mouse('click', 1);
    mouse('click', 2);
    queue.reset();
    mouse('click', 3);
    expect(finish()).toEqual([1, 3].map((x) => ({ action: 'click', x, y: 0 })));
  });

  test('that cannot be sent keeps no later input waiting', () => {
    isSent = false;
    mouse('click', 1);
    isSent = true;
    mouse('click', 2);
    expect(calls).toHaveLength(2);
  });

  test('does not keep a button pressed when the page is gone', () => {
    mouse('down', 1, { button: 'middle' });
    mouse('move', 9);
    queue.release();
    expect(finish()).toEqual([
      { action: 'down', x: 1, y: 0, button: 'middle' },
      { action: 'up', x: 1, y: 0, button: 'middle' },
    ]);
    queue.release();
    mouse('click', 2);
    expect(finish()).toHaveLength(3);
  });
});
