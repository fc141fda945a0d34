/**
 * Stored chunks of a session's files, for the worker that has or had the sandbox of this generation. Anyone else gets
 * 404 `session_not_found`, and a worker whose sandbox is not the latest start 409 `stale_generation`. Chunks travel
 * between the worker and the object store, by URLs that are valid for a few minutes.
 *
 * A save: `missing`, then for these chunks `uploads`, the uploads themselves and `uploaded`, and at last a turn that
 * names all chunks of the files. Chunks that no turn names are removed after a while.
 */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { Count } from './bounds.ts';

const BATCH = 256;
/** Encryption adds at most this many bytes to a chunk. */
const SEALING_BYTES = 64;

/** A keyed digest of the content, in base64url. */
export const ChunkId = Type.String({ pattern: '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$' });
const ChunkIds = Type.Array(ChunkId, { minItems: 1, maxItems: BATCH });

/** `GET /internal/v1/sessions/{chat_session_id}/chunk-secret?generation=N`: the secret of this session's chunks. */
export const ChunkSecretQuery = Type.Object({ generation: Count(1) });
export type ChunkSecretQuery = Static<typeof ChunkSecretQuery>;
/** 32 bytes in base64. Kept in memory only. */
export const ChunkSecret = Type.Object({ secret: Type.String({ minLength: 44, maxLength: 44 }) });
export type ChunkSecret = Static<typeof ChunkSecret>;

/** The body of requests that name chunks. */
export const NamedChunks = Type.Object({ generation: Count(1), ids: ChunkIds });
export type NamedChunks = Static<typeof NamedChunks>;

/**
 * `POST /internal/v1/sessions/{chat_session_id}/chunks/missing` with {@link NamedChunks}: which of these are not stored.
 * The others stay stored for at least an hour.
 */
export const MissingChunks = Type.Object({ ids: Type.Array(ChunkId) });
export type MissingChunks = Static<typeof MissingChunks>;

/**
 * `POST /internal/v1/sessions/{chat_session_id}/chunks/uploads`: announces uploads of exactly this many bytes each.
 * Announcing a chunk again replaces its last announcement.
 */
export const UploadChunksRequest = Type.Object({
  generation: Count(1),
  chunks: Type.Array(
    Type.Object({
      id: ChunkId,
      stored_bytes: Type.Integer({ minimum: 1, maximum: LIMITS.chunkBytes + SEALING_BYTES }),
    }),
    { minItems: 1, maxItems: BATCH },
  ),
});
export type UploadChunksRequest = Static<typeof UploadChunksRequest>;

/**
 * `POST /internal/v1/sessions/{chat_session_id}/chunks/downloads` with {@link NamedChunks}: 404 `file_not_found` unless
 * all are stored. Also the response to {@link UploadChunksRequest}, without the chunks that are stored by now.
 * A URL without a host is relative to the control plane.
 */
export const ChunkUrls = Type.Object({
  chunks: Type.Array(Type.Object({ id: ChunkId, url: Type.String() })),
});
export type ChunkUrls = Static<typeof ChunkUrls>;

/** The files of a session: the chunks of a tar of the agent's home directory, in order, and its length. */
export const FilesManifest = Type.Object({
  size_bytes: Type.Integer({ minimum: 0, maximum: LIMITS.sessionFilesBytes }),
  chunks: Type.Array(ChunkId, {
    maxItems: Math.ceil(LIMITS.sessionFilesBytes / LIMITS.chunkMinBytes),
  }),
});
export type FilesManifest = Static<typeof FilesManifest>;
