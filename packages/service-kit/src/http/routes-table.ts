/** The methods of each route pattern, for 405 responses with `Allow`. */
export class RoutesTable {
  readonly #methods = new Map<string, Set<string>>();

  add(pattern: string, methods: string | readonly string[]): void {
    const known = this.#methods.get(pattern) ?? new Set();
    for (const method of [methods].flat()) known.add(method);
    this.#methods.set(pattern, known);
  }

  /**
   * The sorted methods of the routes that match `path` (without query); empty when no route matches.
   * @param isServed excludes patterns
   */
  methodsOf(path: string, isServed: (pattern: string) => boolean): string[] {
    const methods = [...this.#methods]
      .filter(([pattern]) => matches(pattern, path) && isServed(pattern))
      .flatMap(([, known]) => [...known]);
    return [...new Set(methods)].sort();
  }
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  for (const [index, part] of wanted.entries()) {
    if (part === '*') return true;
    const actual = given[index];
    if (actual === undefined) return false;
    if (part.startsWith(':') ? actual === '' : part !== actual) return false;
  }
  return wanted.length === given.length;
}
