import { randomFillSync, randomInt, randomUUID } from 'node:crypto';

const DRAWN_AT_ONCE = 128;
/** How many of each Node draws in advance. */
const UUIDS_IN_STOCK = 128;
const INTEGERS_IN_STOCK = 1024;

/**
 * Makes a clone's random numbers its own. OpenSSL draws a new seed once the clone has been told the time; what was
 * drawn before that, and what the engine's own generator would draw, is the same in every clone of a snapshot.
 */
export function freshenRandomness(): void {
  for (let drawn = 0; drawn < UUIDS_IN_STOCK; drawn += 1) randomUUID();
  for (let drawn = 0; drawn < INTEGERS_IN_STOCK; drawn += 1) randomInt(2);
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
