import { LIMITS } from '@svc/contract';
import type { TreeEntry } from '@svc/microvm';
import { keyOf } from './changes.ts';

const MIB = 1024 * 1024;
/** More than this is committed in several parts. */
const PART_BYTES = 256 * MIB;
const PART_CHANGES = 20_000;
/** The answer to a commit names all refusals of so many changes. */
const SMALL_PART_CHANGES = 1000;
/** As many entries may be gone since the last listing as a tree may have, and as many may be new. */
const MOST_CHANGES = 2 * LIMITS.workspaceEntries;
/** What is remembered until the next flush. */
const KEPT_BYTES = 16 * MIB;
/** Of an entry: its objects, its numbers and its place in a map. */
const ENTRY_BYTES = 512;

/** A change in the guest that is not committed yet. */
export type PendingChange = TreeEntry | { readonly kind: 'deleted'; readonly path: Buffer };

/** What has changed in a guest and is not committed yet: of each path, the last change. */
export class PendingChanges {
  /** By path in base64url. */
  readonly #changes = new Map<string, PendingChange>();
  /** Files to read again in the next flush. */
  readonly #again = new Map<string, TreeEntry>();
  #partChanges = PART_CHANGES;

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Whether a listing with this many changes still fits. */
  hasRoomFor(listed: number): boolean {
    return this.#changes.size + listed <= MOST_CHANGES;
  }

  /** Whether it takes more memory than may be kept until the next flush. */
  get isTooLarge(): boolean {
    return memoryOf(this.#changes) + memoryOf(this.#again) > KEPT_BYTES;
  }

  add(change: PendingChange): void {
    this.#changes.set(keyOf(change.path), change);
  }

  remove({ path }: PendingChange): void {
    this.#changes.delete(keyOf(path));
  }

  /** Has a file read again in the next flush, because a process had it open for writing. */
  readAgain(file: TreeEntry): void {
    this.#again.set(keyOf(file.path), file);
  }

  /** Begins a flush: files that are to be read again are changed, too. */
  begin(): void {
    for (const [key, file] of this.#again) {
      if (!this.#changes.has(key)) this.#changes.set(key, file);
    }
    this.#again.clear();
  }

  clear(): void {
    this.#changes.clear();
    this.#again.clear();
  }

  /** Has parts from now on so small that the answer to a commit names all that it refuses. */
  useSmallParts(): void {
    this.#partChanges = SMALL_PART_CHANGES;
  }

  /** All changes in the order of paths, in parts to be committed one after another. None of the parts is empty. */
  parts(): readonly (readonly PendingChange[])[] {
    const sorted = [...this.#changes.values()].sort((a, b) => a.path.compare(b.path));
    const parts: PendingChange[][] = [];
    let bytes = 0;
    for (const change of sorted) {
      const size = change.kind === 'file' ? change.size : 0;
      let part = parts.at(-1);
      const isFull = bytes > 0 && bytes + size > PART_BYTES;
      if (part === undefined || isFull || part.length >= this.#partChanges) {
        part = [];
        parts.push(part);
        bytes = 0;
      }
      part.push(change);
      bytes += size;
    }
    return parts;
  }
}

/** About how much memory changes take, each with its path as a key, too. */
function memoryOf(changes: ReadonlyMap<string, PendingChange>): number {
  let bytes = 0;
  for (const [key, change] of changes) {
    const target = change.kind === 'deleted' ? 0 : change.target.length;
    bytes += ENTRY_BYTES + key.length + change.path.length + target;
  }
  return bytes;
}
