import { randomUUID } from 'node:crypto';
import type { WorkspaceChange, WorkspaceExtent } from '@svc/contract';

/** The bytes of a path, as they are sent. */
export const b64 = (text: string | Buffer) => Buffer.from(text).toString('base64url');
/** The id of a flush. */
export const newFlush = () => randomUUID();
/** A file with this content; empty by default. */
export const file = (path: string | Buffer, extents: WorkspaceExtent[] = []): WorkspaceChange => ({
  kind: 'file',
  path: b64(path),
  mode: 0o644,
  mtime_ms: 1_000,
  size: extents.reduce((sum, { length }) => sum + length, 0),
  extents,
});
export const directory = (path: string): WorkspaceChange => ({
  kind: 'directory',
  path: b64(path),
  mode: 0o755,
  mtime_ms: 2_000,
});
export const symlink = (path: string, target: string): WorkspaceChange => ({
  kind: 'symlink',
  path: b64(path),
  mode: 0o777,
  mtime_ms: 3_000,
  target: b64(target),
});
/** The deletion of an entry that has this version. */
export const deleted = (path: string, version: number): WorkspaceChange => ({
  kind: 'deleted',
  path: b64(path),
  version,
});
