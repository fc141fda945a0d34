/** Small schema builders that the resources share. */

import { type TSchema, type TSchemaOptions, type TUnsafe, Type } from 'typebox';
import type { ErrorCode } from './errors/catalogue.ts';

/** Schema keyword: the error code for a missing or invalid value of this schema. */
export const ERROR_CODE_KEYWORD = 'x-error-code';
/** Schema keyword: the request body is optional. */
export const OPTIONAL_BODY_KEYWORD = 'x-optional-body';
/** Schema keyword: the most bytes that a string has in UTF-8. */
export const MAX_BYTES_KEYWORD = 'x-max-bytes';

/** Schema options that make a failed validation of this value produce `code`. */
export function failsWith(code: ErrorCode): { [ERROR_CODE_KEYWORD]: ErrorCode } {
  return { [ERROR_CODE_KEYWORD]: code };
}

/** RFC 3339 in UTC with milliseconds, as `Date.prototype.toISOString` writes it. */
export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, with milliseconds.',
  examples: ['2026-11-21T12:00:00.000Z'],
});

/**
 * An object with arbitrary string keys.
 * Uses `additionalProperties` because the key pattern of `Type.Record` skips keys that contain a newline.
 */
export function mapOf<T>(
  value: TSchema | TSchemaOptions,
  options: TSchemaOptions = {},
): TUnsafe<Record<string, T>> {
  return Type.Unsafe<Record<string, T>>({
    type: 'object',
    additionalProperties: value,
    ...options,
  });
}

/** A free-form JSON object. */
export const FreeObject = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
});

/** Matches strings without NUL, which no Linux path, argument or environment value can contain. */
export const NO_NUL = '^[^\\u0000]*$';
