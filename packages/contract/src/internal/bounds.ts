/** Bounds for the values that workers report, all of which the ledger must be able to store. */

import { Type } from 'typebox';

/** Largest value of a PostgreSQL `integer`. */
export const INTEGER_MAX = 2 ** 31 - 1;

const PRINTABLE_ASCII = '^[\\x20-\\x7e]*$';

/** An integer of at least `minimum`. */
export const Count = (minimum = 0) => Type.Integer({ minimum, maximum: INTEGER_MAX });

/** A number of milliseconds, or of what is counted, that can be larger than a {@link Count}. */
export const Total = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** An id, a name or an address. PostgreSQL can store neither NUL nor a lone surrogate. */
export const ShortText = (minLength = 0) =>
  Type.String({ minLength, maxLength: 256, pattern: PRINTABLE_ASCII });

/** A time that PostgreSQL can store. */
export const ReportedTime = Type.String({ format: 'date-time', pattern: '^2\\d{3}-' });
