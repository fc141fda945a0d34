import { ArgumentError } from './argument-error.ts';

/** A parser of one of a few words. */
export function oneOf<const Word extends string>(
  words: readonly Word[],
  what: string,
  example: string,
): (text: string) => Word {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word !== undefined) return word;
    throw new ArgumentError(`"${text}" is not ${what}`, `use one of ${words.join(', ')}`, example);
  };
}

/** Collects a repeated option into one list. */
export function collect(text: string, collected: readonly string[] = []): string[] {
  return [...collected, text];
}
