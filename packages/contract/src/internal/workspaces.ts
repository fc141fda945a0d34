/**
 * The workspace of a sandbox, for the worker that has the sandbox. All routes are below
 * `/internal/v1/sandboxes/{vm_id}/workspace`. A worker without this sandbox, and a sandbox without a workspace, get 404
 * `sandbox_not_found`; a generation that is not that of the sandbox's placement gets 409 `stale_generation`. A worker
 * may still flush for an hour after the end of the sandbox.
 *
 * A workspace is a set of entries: files, directories and symbolic links, each under a path of bytes. The content of a
 * file is a list of extents in chunks, or one plain object if a customer uploaded it. Directories may be implicit: a file
 * `a/b` may exist without an entry `a`.
 *
 * Chunks work as those of sessions do, with the same bodies (see `chunks.ts`) and a secret of the workspace:
 *
 * - `GET …/chunk-secret?generation=N`: `ChunkSecret`. Every sandbox of the workspace gets the same.
 * - `POST …/chunks/missing`, `POST …/chunks/uploads`, `POST …/chunks/uploaded`, `POST …/chunks/downloads`
 *
 * A chunk that no staged change and no entry names is removed after an hour. A chunk may hold the content of many small
 * files.
 *
 * A flush: store the chunks, stage pages of changes under a new flush id, then commit. Nothing is visible before the
 * commit, and everything is after it. Any call may be repeated. A sandbox has at most one open flush: staging the first
 * page of a flush closes the one before, so that a late commit cannot bring back older content. A staged flush is dropped
 * an hour after its last page.
 */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { Count } from './bounds.ts';
import { ChunkId } from './chunks.ts';
import { OpenEnum } from './open-enum.ts';

/** Bytes in base64url without padding. */
const Bytes = (maxBytes: number) =>
  Type.String({
    pattern: '^[A-Za-z0-9_-]+$',
    minLength: 2,
    maxLength: Math.ceil((maxBytes * 4) / 3),
  });

/**
 * The bytes of a path, in base64url: relative to the workspace, names separated by single slashes, at most 4,095 bytes
 * and each name at most 255, without NUL, empty names, `.` and `..`. A request with any other path is refused as a whole,
 * with 400 `workspace_path_invalid`.
 */
const Path = Bytes(LIMITS.pathBytes - 1);
/** The permission bits, with setuid, setgid and the sticky bit. */
const Mode = Type.Integer({ minimum: 0, maximum: 0o7777 });
/** Modification time in milliseconds since 1970, as JavaScript can represent it. */
const Mtime = Type.Integer({ minimum: -8_640_000_000_000_000, maximum: 8_640_000_000_000_000 });
/** Increases with every change of the workspace. */
const Version = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const Size = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** A piece of a file: bytes of a chunk, or zeros. */
export const WorkspaceExtent = Type.Object({
  /** Absent: a hole, which reads as zeros. */
  id: Type.Optional(ChunkId),
  /** Where the piece begins in the content of the chunk. Absent: 0. */
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: LIMITS.chunkBytes - 1 })),
  /** At most `LIMITS.chunkBytes` with an id. */
  length: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
export type WorkspaceExtent = Static<typeof WorkspaceExtent>;

const Extents = Type.Array(WorkspaceExtent, { maxItems: LIMITS.workspaceFileExtents });

const directoryFields = {
  kind: Type.Literal('directory'),
  path: Path,
  mode: Mode,
  mtime_ms: Mtime,
};
const symlinkFields = {
  kind: Type.Literal('symlink'),
  path: Path,
  mode: Mode,
  mtime_ms: Mtime,
  /** Never interpreted. May lead anywhere, or nowhere. */
  target: Bytes(LIMITS.pathBytes - 1),
};
const fileFields = {
  kind: Type.Literal('file'),
  path: Path,
  mode: Mode,
  mtime_ms: Mtime,
  size: Size,
};
const version = { version: Version };

/** An entry as it is stored. */
export const WorkspaceEntry = Type.Union([
  Type.Object({ ...directoryFields, ...version }),
  Type.Object({ ...symlinkFields, ...version }),
  Type.Object({
    ...fileFields,
    ...version,
    /** In order, with a total of `size` bytes. Absent for a plain object: see {@link WorkspaceObjectsRequest}. */
    extents: Type.Optional(Extents),
  }),
]);
export type WorkspaceEntry = Static<typeof WorkspaceEntry>;

/**
 * `GET …/entries?generation=N&after=…&limit=…`: a page of entries in the order of the bytes of their paths. The first
 * page, without `after`, makes complete uploads of customers files before. Each entry is consistent, but two pages may
 * show the workspace before and after a flush of another sandbox.
 */
export const WorkspaceEntriesQuery = Type.Object({
  generation: Count(1),
  /** `next` of the page before. */
  after: Type.Optional(Path),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: LIMITS.workspacePage, default: LIMITS.workspacePage }),
  ),
});
export type WorkspaceEntriesQuery = Static<typeof WorkspaceEntriesQuery>;

/** May contain fewer entries than `limit`, if they have many extents, and none only if there are none. */
export const WorkspaceEntries = Type.Object({
  entries: Type.Array(WorkspaceEntry),
  /** Absent on the last page. */
  next: Type.Optional(Path),
});
export type WorkspaceEntries = Static<typeof WorkspaceEntries>;

/** `POST …/objects/downloads`: URLs for the content of files that are plain objects. */
export const WorkspaceObjectsRequest = Type.Object({
  generation: Count(1),
  paths: Type.Array(Path, { minItems: 1, maxItems: 256 }),
});
export type WorkspaceObjectsRequest = Static<typeof WorkspaceObjectsRequest>;

/**
 * Leaves out paths that are no longer plain objects. The URLs are valid for a few minutes and accept ranges; one without
 * a host is relative to the control plane. `version` says which content it is.
 */
export const WorkspaceObjects = Type.Object({
  objects: Type.Array(
    Type.Object({ path: Path, version: Version, size: Size, url: Type.String() }),
  ),
});
export type WorkspaceObjects = Static<typeof WorkspaceObjects>;

/** The id of a flush, a new UUID for each. */
export const WorkspaceFlushParams = Type.Object({
  id: Type.String(),
  flush_id: Type.String({ format: 'uuid' }),
});
export type WorkspaceFlushParams = Static<typeof WorkspaceFlushParams>;

/**
 * A change of one path. The three kinds of entries replace whatever is at the path. A rename is a deletion and an entry.
 *
 * `deleted` applies only while the entry still has the version that this sandbox knows, from `entries` or from its own
 * commits. An entry that another sandbox or a customer has changed since stays. A directory stays while anything is in it.
 */
export const WorkspaceChange = Type.Union([
  Type.Object(directoryFields),
  Type.Object(symlinkFields),
  Type.Object({ ...fileFields, extents: Extents }),
  Type.Object({ kind: Type.Literal('deleted'), path: Path, version: Version }),
]);
export type WorkspaceChange = Static<typeof WorkspaceChange>;

/**
 * `POST …/flushes/{flush_id}/changes`: stages a page of changes; 204. A page replaces what an earlier one said about the
 * same paths. 404 `file_not_found` when a chunk is not stored: nothing of the page is staged then. 409
 * `workspace_flush_closed` when the flush is committed or a newer one of this sandbox has begun. 413 `payload_too_large`
 * when the flush has more than `LIMITS.workspaceFlushChanges` changes or `LIMITS.workspaceFlushExtents` extents: split it
 * into several; a body has at most 16 MiB. 400 `validation_failed` when the lengths of the extents do not add up to `size`, or a path is repeated.
 */
export const WorkspaceChanges = Type.Object({
  generation: Count(1),
  changes: Type.Array(WorkspaceChange, { minItems: 1, maxItems: LIMITS.workspacePage }),
});
export type WorkspaceChanges = Static<typeof WorkspaceChanges>;

/**
 * `POST …/flushes/{flush_id}/commit`: applies all staged changes in one transaction. A repeated commit gets the same
 * answer, for an hour at least; repeat it until there is one, because later deletions need its `version`. 409
 * `workspace_flush_closed` when nothing was staged under this id, or a newer flush of this sandbox has begun.
 */
export const WorkspaceCommitRequest = Type.Object({ generation: Count(1) });
export type WorkspaceCommitRequest = Static<typeof WorkspaceCommitRequest>;

/**
 * Why a change was not applied. All other changes of the flush are.
 * - `changed`: a deletion of an entry that has another version
 * - `not_empty`: a deletion or replacement of a directory that contains an entry
 * - `not_a_directory`: an entry below a file or symbolic link
 * - `quota_exceeded`: a file for which the account has no space; smaller ones are taken first
 * - `too_many_entries`: an entry beyond `LIMITS.workspaceEntries`
 */
export const WORKSPACE_REFUSALS = [
  'changed',
  'not_empty',
  'not_a_directory',
  'quota_exceeded',
  'too_many_entries',
] as const;
export type WorkspaceRefusal = (typeof WORKSPACE_REFUSALS)[number];

/** The result of a commit. */
export const WorkspaceCommit = Type.Object({
  /** The version of every entry that this flush has put. */
  version: Version,
  /** The number of changes that were not applied. A deletion of what does not exist is applied. */
  refused_count: Type.Integer({ minimum: 0 }),
  /** The first 1,000 of them, in the order of their paths. If there are more, stage the changes again in a new flush. */
  refused: Type.Array(Type.Object({ path: Path, reason: OpenEnum(WORKSPACE_REFUSALS) })),
});
export type WorkspaceCommit = Static<typeof WorkspaceCommit>;
