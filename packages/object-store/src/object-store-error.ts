/**
 * - `object_not_found`: no object has this key
 * - `object_changed`: the object has other content than the caller knows
 * - `object_key_invalid`: the key breaks the rules of keys
 * - `object_range_invalid`: the range begins beyond the end of the object
 * - `object_size_mismatch`: the body is longer or shorter than announced
 * - `object_url_invalid`: a presigned URL was not issued by this store for this request
 * - `object_url_expired`: a presigned URL is no longer valid
 * - `object_store_unavailable`: the store failed or did not answer in time; another attempt may succeed
 */
export type ObjectStoreErrorCode =
  | 'object_not_found'
  | 'object_changed'
  | 'object_key_invalid'
  | 'object_range_invalid'
  | 'object_size_mismatch'
  | 'object_url_invalid'
  | 'object_url_expired'
  | 'object_store_unavailable';

/** A failed operation of an object store. */
export class ObjectStoreError extends Error {
  override readonly name = 'ObjectStoreError';
  readonly code: ObjectStoreErrorCode;

  constructor(code: ObjectStoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Whether `error` is an {@link ObjectStoreError}, with this code if one is given. */
export function isObjectStoreError(
  error: unknown,
  code?: ObjectStoreErrorCode,
): error is ObjectStoreError {
  return error instanceof ObjectStoreError && (code === undefined || error.code === code);
}
