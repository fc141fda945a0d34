import DataLoader from 'dataloader';

/** Loads one value by key; undefined when there is none. */
export type BatchLoad<K, V> = (key: K) => Promise<V | undefined>;

const MOST_KEYS = 500;

/**
 * Joins look-ups that arrive while another one is in flight into one statement.
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
    else process.nextTick(dispatch);
  };
  const run = async (keys: readonly K[]): Promise<(V | undefined)[]> => {
    inFlight = true;
    try {
      return await load(keys);
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
