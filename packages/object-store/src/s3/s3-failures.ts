import { S3ServiceException } from '@aws-sdk/client-s3';
import { openDeadline } from '@svc/service-kit/concurrency';
import { ObjectStoreError, type ObjectStoreErrorCode } from '../object-store-error.ts';

/** The codes of S3's errors that say something about the object. Any other is a failure of the store. */
const CODES: Readonly<Record<string, readonly [ObjectStoreErrorCode, string]>> = {
  NoSuchKey: ['object_not_found', 'the object does not exist'],
  NotFound: ['object_not_found', 'the object does not exist'],
  PreconditionFailed: ['object_changed', 'the object has changed'],
  InvalidRange: ['object_range_invalid', 'the range has no byte of the object'],
};

/**
 * Runs requests to S3 within `ms` milliseconds and reports their failures as errors of the store. Errors of the store
 * itself and the reason of the signal pass.
 */
export async function onS3<T>(
  signal: AbortSignal,
  ms: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  using deadline = openDeadline(signal, ms);
  try {
    return await run(deadline.signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ObjectStoreError ? error : storeErrorOf(error);
  }
}

function storeErrorOf(error: unknown): ObjectStoreError {
  const [code, message] = (error instanceof S3ServiceException ? CODES[error.name] : undefined) ?? [
    'object_store_unavailable',
    'the S3 server failed or did not answer in time',
  ];
  return new ObjectStoreError(code, message, { cause: error });
}
