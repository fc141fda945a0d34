import {
  type WorkspaceChange as ChangeOnWire,
  type WorkspaceEntry as EntryOnWire,
  type WorkspaceExtent as ExtentOnWire,
  isWorkspacePath,
  LIMITS,
  ServiceError,
} from '@svc/contract';
import type { Extent, WorkspaceChange, WorkspaceEntry } from '@svc/store';
import { chunkBytesOf, chunkTextOf } from '../../chunks/chunk-ids.ts';

/** The bytes of a path. @throws ServiceError `workspace_path_invalid` */
export function pathOf(text: string): Buffer {
  const path = Buffer.from(text, 'base64url');
  if (isWorkspacePath(path) && textOf(path) === text) return path;
  throw new ServiceError('workspace_path_invalid');
}

/** The text of a path. */
export function textOf(path: Buffer): string {
  return path.toString('base64url');
}

/** An entry for a worker. */
export function entryOf(entry: WorkspaceEntry): EntryOnWire {
  const { kind, mode, version, target, extents } = entry;
  const common = { path: textOf(entry.path), mode, mtime_ms: entry.mtimeMs, version };
  if (kind === 'directory') return { kind, ...common };
  if (kind === 'symlink') return { kind, ...common, target: textOf(target ?? Buffer.alloc(0)) };
  const content = extents === undefined ? {} : { extents: extents.map(extentOf) };
  return { kind, ...common, size: entry.sizeBytes, ...content };
}

/**
 * A page of changes from a worker.
 * @throws ServiceError `workspace_path_invalid`; `validation_failed` for a repeated path, a target with NUL, and extents
 * that do not fit the chunks or the size of their file
 */
export function changesOf(changes: readonly ChangeOnWire[]): WorkspaceChange[] {
  const paths = new Set(changes.map(({ path }) => path));
  if (paths.size !== changes.length) throw invalid('/changes', 'names a path twice');
  return changes.map(changeOf);
}

function changeOf(change: ChangeOnWire, index: number): WorkspaceChange {
  const path = pathOf(change.path);
  const { kind } = change;
  if (kind === 'deleted') return { path, kind, version: change.version };
  const common = { path, kind, mode: change.mode, mtimeMs: change.mtime_ms };
  const empty = { sizeBytes: 0, target: undefined, extents: undefined };
  if (kind === 'directory') return { ...common, ...empty };
  if (kind === 'symlink') {
    const target = Buffer.from(change.target, 'base64url');
    if (target.includes(0)) throw invalid(`/changes/${index}/target`, 'contains NUL');
    return { ...common, ...empty, target };
  }
  const extents = change.extents.map(storedExtentOf);
  const size = extents.reduce((sum, { length }) => sum + length, 0);
  if (size !== change.size || !extents.every(fitsChunk)) {
    throw invalid(`/changes/${index}/extents`, 'do not fit the chunks or the size');
  }
  return { ...common, ...empty, sizeBytes: size, extents };
}

function extentOf({ chunkId, offset, length }: Extent): ExtentOnWire {
  if (chunkId === undefined) return { length };
  return { id: chunkTextOf(chunkId), ...(offset === 0 ? {} : { offset }), length };
}

function storedExtentOf({ id, offset = 0, length }: ExtentOnWire): Extent {
  return { chunkId: id === undefined ? undefined : chunkBytesOf(id), offset, length };
}

function fitsChunk({ chunkId, offset, length }: Extent): boolean {
  return chunkId === undefined ? offset === 0 : offset + length <= LIMITS.chunkBytes;
}

function invalid(path: string, message: string): ServiceError {
  return new ServiceError('validation_failed', undefined, { errors: [{ path, message }] });
}
