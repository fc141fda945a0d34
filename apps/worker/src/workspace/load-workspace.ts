import { DamagedChunkError } from '@svc/chunks';
import type { WorkspaceEntries, WorkspaceEntry, WorkspaceExtent } from '@svc/contract';
import {
  MicrovmError,
  type MicrovmTree,
  TREE_BATCH,
  type TreeContent,
  type TreeWrite,
} from '@svc/microvm';
import { type HeldSlot, retry } from '@svc/service-kit/concurrency';
import type { ChunkStore } from '../chunks/chunk-store.ts';
import { ControlPlaneError, mayPass } from '../control-plane/control-plane-transport.ts';
import { transferMayPass } from '../control-plane/object-transfer.ts';
import type { WorkspaceOwner } from '../control-plane/workspace-api.ts';
import { ChunkWindow } from './chunk-window.ts';
import { callControlPlane, type WorkspaceDeps } from './deps.ts';
import type { Versions } from './versions.ts';

const MIB = 1024 * 1024;
/** A transfer that breaks is repeated from the last batch of this size. */
const BATCH_BYTES = 8 * MIB;
const OBJECT_BYTES = 4 * MIB;
const OBJECTS_AT_ONCE = 256;
const ATTEMPTS = 3;
const NS_PER_MS = 1_000_000n;

/** The page has to be loaded again: a plain object was replaced, or an earlier part of a file is missing. */
class ReplacedError extends Error {
  override readonly name = 'ReplacedError';
}

type FileEntry = Extract<WorkspaceEntry, { kind: 'file' }>;
type Directory = Extract<TreeWrite, { kind: 'directory' }>;

/** A piece of the content of a file. */
type Piece =
  | WorkspaceExtent
  | { readonly url: string; readonly start: number; readonly end: number };

/** An entry to write, with where its content is. */
interface Item {
  readonly entry: WorkspaceEntry;
  readonly write:
    | Exclude<TreeWrite, { kind: 'file' }>
    | Omit<TreeWrite & { kind: 'file' }, 'content'>;
  readonly pieces: readonly Piece[];
  readonly bytes: number;
}

export interface LoadOptions {
  readonly owner: WorkspaceOwner;
  readonly deps: WorkspaceDeps;
  readonly store: ChunkStore<WorkspaceOwner>;
  readonly tree: MicrovmTree;
  /** Is told what is in the guest. */
  readonly versions: Versions;
  /** Shared with the loads of other tenants. */
  readonly slot: Pick<HeldSlot, 'share'>;
  readonly signal: AbortSignal;
}

/**
 * Writes all entries of a workspace into a guest. What the guest cannot hold because of other entries is left out.
 * @throws MicrovmError `disk_full` and others; ControlPlaneError, ObjectTransferError, DamagedChunkError
 */
export async function loadWorkspace(options: LoadOptions): Promise<void> {
  const { tree, signal } = options;
  const directories: Directory[] = [];
  let after: string | undefined;
  do {
    const retries = { attempts: ATTEMPTS, signal, isTransient: isReplaced };
    const page = await retry(() => loadPage(options, after), retries);
    // Makes the directory of an empty workspace.
    if (page.isEmpty) await tree.write([], signal);
    directories.push(...page.directories);
    after = page.next;
  } while (after !== undefined);
  // Writing into a directory changes its time, and the inner ones are in the outer ones.
  directories.reverse();
  for (let at = 0; at < directories.length; at += TREE_BATCH) {
    await tree.write(directories.slice(at, at + TREE_BATCH), signal);
  }
}

async function loadPage(
  options: LoadOptions,
  after: string | undefined,
): Promise<{ isEmpty: boolean; directories: Directory[]; next: string | undefined }> {
  const { owner, deps, store, slot, signal } = options;
  const [page] = await Promise.all([
    callControlPlane<WorkspaceEntries>(() => deps.api.entries(owner, after, signal), signal),
    store.prepare(signal),
  ]);
  const urls = await locateObjects(options, page.entries);
  const items = page.entries.flatMap((entry) => itemsOf(entry, urls));
  for (const batch of batchesOf(items)) {
    const retries = { attempts: ATTEMPTS, signal, isTransient: loadMayPass };
    await retry(() => writeBatch(options, batch), retries);
    await slot.share();
  }
  const directories = items.flatMap(({ write }) => (write.kind === 'directory' ? [write] : []));
  return { isEmpty: items.length === 0, directories, next: page.next };
}

/** The URLs of the plain objects among the entries, by path. */
async function locateObjects(
  { owner, deps, signal }: LoadOptions,
  entries: readonly WorkspaceEntry[],
): Promise<ReadonlyMap<string, string>> {
  const plain = entries.filter((entry) => entry.kind === 'file' && isPlain(entry));
  const urls = new Map<string, string>();
  for (let at = 0; at < plain.length; at += OBJECTS_AT_ONCE) {
    const asked = plain.slice(at, at + OBJECTS_AT_ONCE);
    const paths = asked.map(({ path }) => path);
    const found = await callControlPlane(() => deps.api.objects(owner, paths, signal), signal);
    const versions = new Map(found.map((object) => [object.path, object.version]));
    if (asked.some(({ path, version }) => versions.get(path) !== version)) {
      throw new ReplacedError('a file was replaced while the workspace was loaded');
    }
    for (const { path, url } of found) urls.set(path, url);
  }
  return urls;
}

function isPlain({ extents, size }: FileEntry): boolean {
  return extents === undefined && size > 0;
}

/** A large file is written in several parts. */
function itemsOf(entry: WorkspaceEntry, urls: ReadonlyMap<string, string>): Item[] {
  const common = {
    path: Buffer.from(entry.path, 'base64url'),
    mtimeNs: BigInt(entry.mtime_ms) * NS_PER_MS,
  };
  const { mode } = entry;
  switch (entry.kind) {
    case 'directory':
      return [{ entry, write: { kind: 'directory', ...common, mode }, pieces: [], bytes: 0 }];
    case 'symlink': {
      const target = Buffer.from(entry.target, 'base64url');
      return [{ entry, write: { kind: 'symlink', ...common, target }, pieces: [], bytes: 0 }];
    }
    case 'file':
      return partsOf(entry, urls).map(({ offset, pieces, bytes }) => ({
        entry,
        write: { kind: 'file', ...common, mode, size: entry.size, offset },
        pieces,
        bytes,
      }));
  }
}

interface Part {
  readonly offset: number;
  readonly pieces: Piece[];
  bytes: number;
}

function partsOf(entry: FileEntry, urls: ReadonlyMap<string, string>): Part[] {
  let part: Part = { offset: 0, pieces: [], bytes: 0 };
  let offset = 0;
  const parts = [part];
  for (const piece of piecesOf(entry, urls)) {
    if (part.bytes >= BATCH_BYTES) {
      part = { offset, pieces: [], bytes: 0 };
      parts.push(part);
    }
    const length = 'url' in piece ? piece.end - piece.start : piece.length;
    part.pieces.push(piece);
    // A hole costs nothing to send.
    if ('url' in piece || piece.id !== undefined) part.bytes += length;
    offset += length;
  }
  return parts;
}

function piecesOf(entry: FileEntry, urls: ReadonlyMap<string, string>): readonly Piece[] {
  if (!isPlain(entry)) return entry.extents ?? [];
  const url = urls.get(entry.path) ?? '';
  return Array.from({ length: Math.ceil(entry.size / OBJECT_BYTES) }, (_, index) => {
    const start = index * OBJECT_BYTES;
    return { url, start, end: Math.min(start + OBJECT_BYTES, entry.size) };
  });
}

function* batchesOf(items: readonly Item[]): Generator<readonly Item[]> {
  let batch: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    batch.push(item);
    bytes += item.bytes;
    if (batch.length < TREE_BATCH && bytes < BATCH_BYTES) continue;
    yield batch;
    [batch, bytes] = [[], 0];
  }
  if (batch.length > 0) yield batch;
}

async function writeBatch(
  { deps, store, tree, versions, signal }: LoadOptions,
  batch: readonly Item[],
): Promise<void> {
  const extents = batch.flatMap(({ pieces }) =>
    pieces.flatMap((piece) => ('url' in piece ? [] : [piece])),
  );
  const window = new ChunkWindow(store, extents, signal);
  async function* content(pieces: readonly Piece[]): AsyncGenerator<TreeContent> {
    for (const piece of pieces) {
      if (!('url' in piece)) yield await window.read(piece);
      else yield await deps.objects.getRange(piece.url, piece.start, piece.end, signal);
    }
  }
  try {
    const refused = await tree.write(
      batch.map(({ write, pieces }) =>
        write.kind === 'file' ? { ...write, content: content(pieces) } : write,
      ),
      signal,
    );
    for (const { entry } of batch) versions.set(entry.path, entry.version);
    for (const { index, code } of refused) {
      if (code === 'disk_full') throw new MicrovmError('disk_full', 'the workspace does not fit');
      if (code === 'file_not_found') {
        // The answer to the part before was lost, and the file has its name already.
        throw new ReplacedError('a part of a file was lost while the workspace was loaded');
      }
      // It is not in the guest, so its absence there must not delete it.
      const path = batch[index]?.entry.path;
      if (path !== undefined) versions.delete(path);
    }
  } finally {
    await window.close();
  }
}

function isReplaced(error: unknown): boolean {
  return error instanceof ReplacedError;
}

function loadMayPass(error: unknown): boolean {
  if (error instanceof ReplacedError || error instanceof DamagedChunkError) return false;
  if (error instanceof ControlPlaneError) return mayPass(error);
  if (error instanceof MicrovmError) return error.code === 'guest_unreachable';
  return transferMayPass(error);
}
