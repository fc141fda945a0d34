import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { declaredUploadBytes, ServiceError } from '@svc/contract';
import { hasData, LimitedStream, limitBody } from '@svc/service-kit/streams';
import type { FastifyRequest } from 'fastify';

/** The body of an upload, which never exceeds its limit. */
export interface UploadBody {
  readonly source: Readable;
  readonly length: number | undefined;
}

/**
 * A hook before the body is parsed: refuses a request with neither a media type nor bytes. With a media type, no bytes
 * are an empty file.
 * @throws ServiceError `missing_body`
 */
export async function refuseMissingBody({ headers, raw }: FastifyRequest): Promise<void> {
  if (headers['content-type'] === undefined && !(await hasData(raw))) {
    throw new ServiceError('missing_body');
  }
}

/**
 * Opens the body of an upload request. Destroying the stream leaves the connection open for the response.
 * @throws ServiceError `payload_too_large` when its declared length is over the limit; a body that turns out too large
 *   fails while it is read
 */
export function openUpload(request: IncomingMessage, maxBytes: number): UploadBody {
  const length = declaredUploadBytes(request.headers['content-length'], maxBytes);
  const source = new LimitedStream({ maxBytes });
  limitBody(request, source);
  return { source, length };
}
