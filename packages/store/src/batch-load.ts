import DataLoader from 'dataloader';

/** Loads one value by its key. Undefined when there is none. */
export type BatchLoad<K, V> = (key: K) => Promise<V | undefined>;

const MAX_KEYS = 500;

/**
 * Combines look-ups that arrive together, or while a statement is in flight, into one statement.
 *
 * A look-up never joins a statement that has already been sent, so its result is never older than the look-up: a
 * revocation committed before a request applies to the request.
 */
export function batchLoad<K, V>(
  load: (keys: readonly K[]) => Promise<(V | undefined)[]>,
): BatchLoad<K, V> {
  let inFlight = false;
  let waiting: (() => void)[] = [];

  const schedule = (dispatch: () => void): void => {
    if (inFlight) waiting.push(dispatch);
    // After the look-ups of all requests that have already arrived.
    else setImmediate(dispatch);
  };
  const run = async (keys: readonly K[]): Promise<(V | undefined)[]> => {
    inFlight = true;
    try {
      // Concurrent requests often come from one caller, so keys repeat. The statement names each key once.
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
    maxBatchSize: MAX_KEYS,
    batchScheduleFn: schedule,
  });
  return (key) => loader.load(key);
}
