import { ObjectStoreError } from '../object-store-error.ts';

/** Whether a file or one of its directories does not exist. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR';
}

/** The result of an operation on a file, or undefined if the file does not exist. */
export async function unlessMissing<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Whether a directory still has entries. */
export function isNotEmpty(error: unknown): boolean {
  return codeOf(error) === 'ENOTEMPTY' || codeOf(error) === 'EEXIST';
}

/**
 * Runs an operation on files and reports its failure as an `object_store_unavailable`. Errors of the store itself and
 * the reason of the signal pass.
 */
export async function onFiles<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof ObjectStoreError || codeOf(error) === undefined
      ? error
      : new ObjectStoreError('object_store_unavailable', 'the directory of objects failed', {
          cause: error,
        });
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
}
