import {
  LIMITS,
  type WorkspaceChange,
  type WorkspaceEntry,
  type WorkspaceExtent,
} from '@svc/contract';
import type { TreeEntry } from '@svc/microvm';

const MAX_MS = 8_640_000_000_000_000;
const NS_PER_MS = 1_000_000n;
/** Of one page as JSON. */
const PAGE_BYTES = 1024 * 1024;
/** An extent as JSON, at most. */
const EXTENT_BYTES = 120;
const CHANGE_BYTES = 120;

/** A path in the format of the control plane, in which it is the key of what this worker remembers of an entry, too. */
export function keyOf(path: Buffer): string {
  return path.toString('base64url');
}

/** An entry of the guest in the format of the control plane. */
export function changeOf(entry: TreeEntry, extents: WorkspaceExtent[]): WorkspaceChange {
  const common = { path: keyOf(entry.path), mode: entry.mode, mtime_ms: mtimeMsOf(entry) };
  switch (entry.kind) {
    case 'directory':
      return { kind: 'directory', ...common };
    case 'symlink':
      return { kind: 'symlink', ...common, target: entry.target.toString('base64url') };
    case 'file':
      return { kind: 'file', ...common, size: entry.size, extents };
  }
}

/** The modification time in the precision of the control plane. */
export function mtimeMsOf({ mtimeNs }: Pick<TreeEntry, 'mtimeNs'>): number {
  return Math.max(-MAX_MS, Math.min(MAX_MS, Number(mtimeNs / NS_PER_MS)));
}

/** Whether an entry of the guest looks like the stored one. */
export function isSame(entry: TreeEntry, stored: WorkspaceEntry): boolean {
  if (entry.kind !== stored.kind || mtimeMsOf(entry) !== stored.mtime_ms) return false;
  if (stored.kind === 'symlink') return entry.target.toString('base64url') === stored.target;
  return entry.mode === stored.mode && (stored.kind !== 'file' || entry.size === stored.size);
}

/** Groups changes into requests of a bounded size. */
export function* pagesOf(
  changes: Iterable<WorkspaceChange>,
): Generator<readonly WorkspaceChange[]> {
  let page: WorkspaceChange[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = sizeOf(change);
    if (page.length > 0 && (bytes + size > PAGE_BYTES || page.length === LIMITS.workspacePage)) {
      yield page;
      [page, bytes] = [[], 0];
    }
    page.push(change);
    bytes += size;
  }
  if (page.length > 0) yield page;
}

function sizeOf(change: WorkspaceChange): number {
  const extents = change.kind === 'file' ? change.extents.length * EXTENT_BYTES : 0;
  const target = change.kind === 'symlink' ? change.target.length : 0;
  return CHANGE_BYTES + change.path.length + target + extents;
}
