/** Cuts the middle out of a text longer than about `maxChars` characters, and notes the omission. */
export function truncateMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const kept = new HeadAndTail(maxChars);
  kept.add(text);
  return kept.text();
}

/** Consumes text of any length and keeps its beginning and end, together at most `maxChars` characters. */
export class HeadAndTail {
  readonly #half: number;
  #head = '';
  #tail = '';
  #dropped = 0;

  constructor(maxChars: number) {
    this.#half = Math.max(1, Math.floor(maxChars / 2));
  }

  add(text: string): void {
    const missing = this.#half - this.#head.length;
    this.#head += text.slice(0, missing);
    this.#tail += missing > 0 ? text.slice(missing) : text;
    // Cut rarely, since each cut copies the tail.
    if (this.#tail.length > 2 * this.#half) this.#cut();
  }

  text(): string {
    this.#cut();
    if (this.#dropped === 0) return this.#head + this.#tail;
    return `${this.#head.toWellFormed()}\n[… ${this.#dropped} characters left out …]\n${this.#tail.toWellFormed()}`;
  }

  #cut(): void {
    const excess = this.#tail.length - this.#half;
    if (excess <= 0) return;
    this.#dropped += excess;
    this.#tail = this.#tail.slice(excess);
  }
}
