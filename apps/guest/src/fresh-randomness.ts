import { randomFillSync, randomInt, randomUUID } from 'node:crypto';

const BATCH = 128;
/** Values that Node generates in advance. */
const CACHED_UUIDS = 128;
const CACHED_INTEGERS = 1024;

/**
 * Makes a clone's random numbers unique. OpenSSL reseeds itself once the clone's clock is set. Values that Node cached
 * before the snapshot, and the sequence of the engine's `Math.random`, would be the same in every clone: the cache is
 * used up, and `Math.random` replaced.
 */
export function freshenRandomness(): void {
  for (let drawn = 0; drawn < CACHED_UUIDS; drawn += 1) randomUUID();
  for (let drawn = 0; drawn < CACHED_INTEGERS; drawn += 1) randomInt(2);
  const numbers = new BigUint64Array(BATCH);
  let next = BATCH;
  Math.random = () => {
    if (next === BATCH) {
      randomFillSync(numbers);
      next = 0;
    }
    const drawn = numbers[next] ?? 0n;
    next += 1;
    return Number(drawn >> 11n) / 2 ** 53;
  };
}
