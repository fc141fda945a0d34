/** A name that differs in more than one of so many characters was probably not meant. */
const CHARACTERS_PER_TYPO = 4;

/** The candidate that `name` is probably a misspelling of, if there is one. */
export function closest(name: string, candidates: readonly string[]): string | undefined {
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: distanceOf(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const allowed = Math.floor(name.length / CHARACTERS_PER_TYPO);
  return best !== undefined && best.distance <= allowed ? best.candidate : undefined;
}

/** The Levenshtein distance: the number of characters to insert, remove or replace. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const [diagonal = 0, above = 0] = row.slice(j, j + 2);
      const left = next[j] ?? 0;
      next.push(Math.min(above + 1, left + 1, diagonal + (char === other ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
