import type { WorkspaceEntryKind } from '../../schema.ts';

/** What identifies a workspace. */
export interface WorkspaceScope {
  readonly tenantId: string;
  readonly appId: string;
  readonly capsetId: string;
}

/** What workspaces may have. */
export interface WorkspaceQuota {
  /** Bytes of all workspaces of a tenant. */
  readonly tenantBytes: number;
  /** Entries of all workspaces of a tenant: links, directories and empty files have no bytes, but rows. */
  readonly tenantEntries: number;
  /** Entries of one workspace. */
  readonly entries: number;
}

/** A workspace, with the sums of its files. */
export interface Workspace {
  readonly workspaceId: string;
  readonly appId: string;
  readonly capsetId: string;
  readonly sizeBytes: number;
  readonly fileCount: number;
}

/** The content of a file: an object, or extents in chunks. */
export type WorkspaceContent =
  | { readonly objectKey: string; readonly contentId?: undefined }
  | { readonly contentId: string; readonly objectKey?: undefined };

/** A file of a workspace. `path` is relative to it. */
export interface WorkspaceFile {
  readonly path: Buffer;
  readonly sizeBytes: number;
  readonly modifiedAt: Date;
  readonly version: number;
  readonly content: WorkspaceContent;
}

/** A piece of a file: bytes of a chunk, or zeros if it names none. */
export interface Extent {
  readonly chunkId: Buffer | undefined;
  /** Where the piece begins in the content of the chunk. */
  readonly offset: number;
  readonly length: number;
}

/** A file, directory or symbolic link, as a sandbox sees it. */
export interface WorkspaceEntry {
  readonly path: Buffer;
  readonly kind: WorkspaceEntryKind;
  readonly mode: number;
  readonly mtimeMs: number;
  readonly sizeBytes: number;
  readonly target: Buffer | undefined;
  /** Undefined unless the content is in chunks. */
  readonly extents: readonly Extent[] | undefined;
  readonly version: number;
}

/** What a flush changes at a path. */
export type WorkspaceChange =
  | (Omit<WorkspaceEntry, 'version'> & { readonly version?: undefined })
  /** Applies to the entry with this version only. */
  | { readonly path: Buffer; readonly kind: 'deleted'; readonly version: number };
