import { type ErrorCode, ServiceError } from '@svc/contract';
import { isObjectStoreError, type ObjectStoreErrorCode } from '@svc/object-store';

/** The failures that a caller can be told of. A key is never the caller's, so that an invalid one is a bug or a forgery. */
const CODES: Readonly<Record<ObjectStoreErrorCode, ErrorCode>> = {
  object_not_found: 'object_not_found',
  // Only copies check for changes, and their caller handles it.
  object_changed: 'internal_error',
  object_key_invalid: 'object_url_invalid',
  object_range_invalid: 'range_not_satisfiable',
  object_size_mismatch: 'object_size_mismatch',
  object_url_invalid: 'object_url_invalid',
  object_url_expired: 'object_url_expired',
  object_store_unavailable: 'object_store_unavailable',
};

/** The error for a store that does not answer, which tells callers when to try again. */
export function objectStoreUnavailable(cause: unknown): ServiceError {
  return new ServiceError('object_store_unavailable', undefined, { cause });
}

/** Runs an operation on objects and reports its failure as a {@link ServiceError}. Other errors pass. */
export async function onObjects<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isObjectStoreError(error)) throw error;
    if (error.code === 'object_store_unavailable') throw objectStoreUnavailable(error);
    throw new ServiceError(CODES[error.code], undefined, { cause: error });
  }
}
