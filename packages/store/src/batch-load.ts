import DataLoader from 'dataloader';

/** Loads one value by key; undefined when there is none. */
export type BatchLoad<K, V> = (key: K) => Promise<V | undefined>;

const MOST_KEYS = 500;

/**
 * Joins look-ups that arrive together, or while others are in flight, into one statement.
 *
 * A look-up never joins a statement that was already sent, so what it answers is never older than
 * the moment it was asked: a revocation committed before the request holds for the request.
 */
export function batchLoad<K, V>(
  load: (keys: readonly K[]) => Promise<(V | undefined)[]>,
): BatchLoad<K, V> {
  let inFlight = false;
  let waiting: (() => void)[] = [];

  const schedule = (dispatch: () => void): void => {
    if (inFlight) waiting.push(dispatch);
    // After every request that has arrived by now.
    else setImmediate(dispatch);
  };
  const run = async (keys: readonly K[]): Promise<(V | undefined)[]> => {
    inFlight = true;
    try {
      // Many requests at once are often of one caller: the statement names each key once.
      const distinct = [...new Set(keys)];
      const values = await load(distinct);
      const found = new Map(distinct.map((key, index) => [key, values[index]]));
      return keys.map((key) => found.get(key));
    } finally {
      inFlight = false;
      const next = waiting;
      waiting = [];
      for (const dispatch of next) dispatch();
    }
  };
  const loader = new DataLoader<K, V | undefined>(run, {
    cache: false,
    maxBatchSize: MOST_KEYS,
    batchScheduleFn: schedule,
  });
  return (key) => loader.load(key);
}
