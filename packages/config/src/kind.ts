import type { TSchema } from 'typebox';

/** How the text of a variable becomes a value, and what values are accepted. */
export interface Kind<T> {
  /** What a reader should write, to complete "must be …". */
  readonly expects: string;
  /** What the converted value must satisfy. */
  readonly schema: TSchema;
  /** The value, or undefined when the text has not the right form. */
  convert(text: string): T | undefined;
  /** The value is never shown, not even in a problem report. */
  readonly secret?: boolean;
}

/** One environment variable. */
export interface Variable<T> {
  readonly name: string;
  readonly meaning: string;
  readonly kind: Kind<T>;
  /** The text taken when the variable is absent or empty; none makes the value undefined. */
  readonly fallback?: string;
  /** What the documentation says of the default where the text itself depends on the machine. */
  readonly documentedDefault?: string;
}
