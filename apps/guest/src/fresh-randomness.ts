import { randomFillSync } from 'node:crypto';

const DRAWN_AT_ONCE = 128;

/**
 * Makes `Math.random` draw from the cryptographic generator. The engine's own goes on from where it was in the
 * snapshot, with the same numbers in every clone; OpenSSL draws a new seed once a clone has been told the time.
 */
export function freshenMathRandom(): void {
  const numbers = new BigUint64Array(DRAWN_AT_ONCE);
  let next = DRAWN_AT_ONCE;
  Math.random = () => {
    if (next === DRAWN_AT_ONCE) {
      randomFillSync(numbers);
      next = 0;
    }
    const drawn = numbers[next] ?? 0n;
    next += 1;
    return Number(drawn >> 11n) / 2 ** 53;
  };
}
