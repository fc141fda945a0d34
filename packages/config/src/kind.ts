import type { TSchema } from 'typebox';

/** The conversion of a variable's text to a value, and the accepted values. */
export interface Kind<T> {
  /** The expected form, to complete "must be …". */
  readonly expects: string;
  /** The schema of the converted value. */
  readonly schema: TSchema;
  /** The value, or undefined when the text has the wrong form. */
  convert(text: string): T | undefined;
  /** The value is never shown, not even in a problem report. */
  readonly secret?: boolean;
}

/** One environment variable. */
export interface Variable<T> {
  readonly name: string;
  readonly meaning: string;
  readonly kind: Kind<T>;
  /** The default text when the variable is absent or empty. Without it the value is undefined. */
  readonly fallback?: string;
  /** The description of a default that depends on the machine. */
  readonly documentedDefault?: string;
}
