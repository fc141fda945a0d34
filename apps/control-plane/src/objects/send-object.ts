import { OCTET_STREAM_MEDIA_TYPE, ServiceError } from '@svc/contract';
import {
  type GetOptions,
  isObjectStoreError,
  type ObjectStore,
  type StoredObject,
} from '@svc/object-store';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseRange } from './byte-ranges.ts';

/** A file never acts as a page of this origin, whatever it contains. */
const HEADERS = {
  'content-disposition': 'attachment',
  'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'accept-ranges': 'bytes',
} as const;

/** What can be opened in whole or in ranges. */
export interface ObjectSource {
  /** @throws ObjectStoreError `object_range_invalid` for a range that begins beyond the end */
  get(options: GetOptions): Promise<StoredObject>;
  /** Number of bytes; undefined if it does not exist. */
  size(signal: AbortSignal): Promise<number | undefined>;
}

/** An object of a store. */
export function objectSource(store: ObjectStore, key: string): ObjectSource {
  return {
    get: (options) => store.get(key, options),
    size: async (signal) => (await store.head(key, signal))?.size,
  };
}

/** Opens an object, or the range of it that a request asks for. @throws ServiceError `range_not_satisfiable`; ObjectStoreError */
export async function openForRequest(
  source: ObjectSource,
  { headers }: FastifyRequest,
  signal: AbortSignal,
): Promise<StoredObject> {
  const range = parseRange(headers.range);
  try {
    const object = await source.get({ range, signal });
    const condition = headers['if-range'];
    if (range === undefined || condition === undefined || condition === tagOf(object)) {
      return object;
    }
    // The object has changed since the caller read its first part.
    object.body.destroy();
  } catch (error) {
    if (!isObjectStoreError(error, 'object_range_invalid')) throw error;
    const size = await source.size(signal);
    throw new ServiceError('range_not_satisfiable', undefined, {
      headers: { 'content-range': `bytes */${size ?? '*'}` },
    });
  }
  return source.get({ signal });
}

/** Answers with the bytes of an object. */
export function sendObject(object: StoredObject, reply: FastifyReply): FastifyReply {
  const { size, first, length, body } = object;
  reply
    .headers(HEADERS)
    .header('etag', tagOf(object))
    .header('last-modified', object.modifiedAt.toUTCString())
    .header('content-length', length)
    .type(OCTET_STREAM_MEDIA_TYPE);
  if (length < size) {
    reply.code(206).header('content-range', `bytes ${first}-${first + length - 1}/${size}`);
  }
  return reply.send(body);
}

function tagOf({ etag }: StoredObject): string {
  return `"${etag}"`;
}
