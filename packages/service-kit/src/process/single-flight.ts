/** Lets concurrent callers of the same key share one call; the next caller after it ended starts a new one. */
export class SingleFlight<Key, T> {
  readonly #flights = new Map<Key, Promise<T>>();

  run(key: Key, call: () => Promise<T>): Promise<T> {
    const current = this.#flights.get(key);
    if (current !== undefined) return current;
    const flight = call().finally(() => this.#flights.delete(key));
    this.#flights.set(key, flight);
    return flight;
  }
}
