import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrowingBuffer } from './growing-buffer.ts';

const chunks = fc.array(fc.uint8Array({ maxLength: 600 }));

describe('GrowingBuffer', () => {
  it('collects chunks of any size in order, and starts anew once they are taken', () => {
    fc.assert(
      fc.property(chunks, chunks, (...rounds) => {
        const collected = new GrowingBuffer(1_000_000);
        for (const round of rounds) {
          for (const chunk of round) expect(collected.append(Buffer.from(chunk))).toBe(true);
          const whole = Buffer.concat(round);
          expect(collected.length).toBe(whole.length);
          expect(collected.take()).toEqual(whole);
        }
      }),
    );
  });

  it('takes exactly the limit, and no byte more', () => {
    const collected = new GrowingBuffer(700);
    expect(collected.append(Buffer.alloc(699, 1))).toBe(true);
    expect(collected.append(Buffer.alloc(2, 2))).toBe(false);
    expect(collected.append(Buffer.alloc(1, 3))).toBe(true);
    expect(collected.append(Buffer.alloc(1, 4))).toBe(false);
    expect(collected.take()).toEqual(Buffer.concat([Buffer.alloc(699, 1), Buffer.alloc(1, 3)]));
  });

  it('holds few times the bytes of chunks that are as small as possible', () => {
    const collected = new GrowingBuffer(1_000_000);
    const before = heldBytes();
    for (let sent = 0; sent < 200_000; sent += 1) collected.append(Buffer.alloc(1));
    expect(heldBytes() - before).toBeLessThan(8_000_000);
    expect(collected.length).toBe(200_000);
  });
});

function heldBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
