/** `GET` and `POST /v1/sandboxes/{id}/files`. */

import { type Static, Type } from 'typebox';
import { ServiceError } from '../errors/service-error.ts';
import { failsWith } from '../schema.ts';

/** Checks form only; `checkPath` applies the path rules. */
export const FileQuery = Type.Object({
  path: Type.String({
    minLength: 1,
    description: 'Absolute path inside the sandbox, without `..` components.',
    examples: ['/tmp/hello.txt'],
    ...failsWith('path_required'),
  }),
});
export type FileQuery = Static<typeof FileQuery>;

export const UploadResponse = Type.Object({ status: Type.Literal('uploaded') });
export type UploadResponse = Static<typeof UploadResponse>;

export const OCTET_STREAM_MEDIA_TYPE = 'application/octet-stream';

/**
 * The length of an upload in bytes according to its Content-Length header; undefined when the header is absent.
 * @throws ServiceError `payload_too_large` when it exceeds `maxBytes`
 */
export function declaredUploadBytes(
  contentLength: string | undefined,
  maxBytes: number,
): number | undefined {
  if (contentLength === undefined) return undefined;
  const bytes = Number(contentLength);
  if (bytes > maxBytes) throw new ServiceError('payload_too_large');
  return bytes;
}
