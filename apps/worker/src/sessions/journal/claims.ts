/** The journals in use by a session or a hand-over, by name: no two may work on the same one. */
export class JournalClaims {
  readonly #names = new Set<string>();

  /** Claims a journal; the returned function releases it. */
  claim(name: string): () => void {
    this.#names.add(name);
    return () => {
      this.#names.delete(name);
    };
  }

  isClaimed(name: string): boolean {
    return this.#names.has(name);
  }
}
