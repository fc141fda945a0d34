import { type TUnsafe, Type } from 'typebox';
import { ShortText } from './bounds.ts';

/** Schema keyword: the values that senders of this version send. */
export const KNOWN_KEYWORD = 'x-known';

/** One of `Known`, or a value that only a newer version of the sender has. */
export type OpenValue<Known extends string> = Known | (string & Record<never, never>);

/**
 * A value of a list that later versions may extend. A receiver accepts any text, because one unknown value must not make
 * the rest of a message invalid, and reads it with {@link knownOr}. Senders send only values of their own list.
 */
export function OpenEnum<const Known extends readonly string[]>(
  known: Known,
): TUnsafe<OpenValue<Known[number]>> {
  return Type.Unsafe<OpenValue<Known[number]>>({ ...ShortText(1), [KNOWN_KEYWORD]: [...known] });
}

/** The value if this version knows it, otherwise `fallback`. */
export function knownOr<Known extends string, const Fallback>(
  known: readonly Known[],
  value: OpenValue<Known>,
  fallback: Fallback,
): Known | Fallback {
  return known.find((each) => each === value) ?? fallback;
}
