/** `GET` and `POST /v1/sandboxes/{id}/files`. */

import { type Static, Type } from 'typebox';
import { failsWith } from '../schema.ts';

/** Form only; `checkPath` holds the rules of the path itself. */
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
