import type { ObjectBody } from './object-store.ts';
import { ObjectStoreError } from './object-store-error.ts';

/**
 * The chunks of a body, which must have exactly `size` bytes. A stream is destroyed when the iteration ends early.
 * @throws ObjectStoreError `object_size_mismatch`, at the latest after the last chunk
 */
export async function* exactly(body: ObjectBody, size: number): AsyncGenerator<Uint8Array> {
  let missing = size;
  for await (const chunk of body instanceof Uint8Array ? [body] : body) {
    const bytes: Uint8Array = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    missing -= bytes.length;
    if (missing < 0) throw sizeMismatch();
    if (bytes.length > 0) yield bytes;
  }
  if (missing > 0) throw sizeMismatch();
}

function sizeMismatch(): ObjectStoreError {
  return new ObjectStoreError(
    'object_size_mismatch',
    'the body of the object does not have as many bytes as announced',
  );
}
