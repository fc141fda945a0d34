import type { GuestAddress } from '../connect-to-guest.ts';

/** Where a tree is. */
export interface GuestTreeOptions {
  readonly address: GuestAddress;
  /** Token of the guest channel. */
  readonly token: string;
  /** The directory that the tree is below, as an absolute path. */
  readonly root: string;
}

/** The kinds of entries in a tree. Devices, pipes and sockets are not part of a tree. */
export type TreeKind = 'file' | 'directory' | 'symlink';

/** An entry of a tree in a guest, as it was when it was listed. */
export interface TreeEntry {
  readonly kind: TreeKind;
  /** Relative to the root of the tree. */
  readonly path: Buffer;
  /** Permission bits, with setuid, setgid and the sticky bit. */
  readonly mode: number;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  /** In bytes; 0 unless it is a file. */
  readonly size: number;
  readonly inode: bigint;
  /** Where a symbolic link leads; empty otherwise. */
  readonly target: Buffer;
}

/** What differs from the listing that the request acknowledged. */
export interface TreeListing {
  /** Names this listing when it is acknowledged. */
  readonly generation: string;
  /** The acknowledged listing is not known any more: this is the whole tree, and `deleted` is empty. */
  readonly complete: boolean;
  readonly changed: readonly TreeEntry[];
  /** Paths of the entries that are gone. */
  readonly deleted: readonly Buffer[];
  /** How many entries were left out: too many, paths too long, or special files. */
  readonly skipped: number;
}

export interface TreeListRequest {
  /** The generation of the last listing that the caller has processed. It must have no earlier one than that. */
  readonly since?: string | undefined;
  /** The most entries that the tree may have. More are skipped. */
  readonly limit: number;
  /** Acknowledges the listing without sending it, when the caller knows what is in the tree. */
  readonly silent?: boolean;
  /**
   * Looks at each entry. Otherwise the guest may rely on its kernel, which reports all changes except writes through
   * memory maps, and what is mounted over a directory.
   */
  readonly full?: boolean;
}

/** A range of a file to read. */
export interface TreeRange {
  /** The file as it was listed. */
  readonly file: Pick<TreeEntry, 'path' | 'size' | 'inode' | 'mtimeNs' | 'ctimeNs'>;
  readonly offset: number;
  readonly length: number;
}

/**
 * How a range was read. Its content is to be used only if it is `complete` or `open`: a process has the file open for
 * writing, so the content may be a mixture, or later writes may leave no trace. Such a file has to be read again.
 */
export type TreeRangeStatus = 'complete' | 'open' | 'changed' | 'gone' | 'refused';

/** Bytes of a file, or the length of a hole in it. */
export type TreeContent = Buffer | { readonly hole: number };

/** A part of the answer to a read. The ranges follow one another in the order of the request. */
export type TreePiece =
  | { readonly range: number; readonly content: TreeContent }
  | { readonly range: number; readonly status: TreeRangeStatus };

/** An entry to write. Missing directories above it are made, and what is at its path is replaced. */
export type TreeWrite =
  | {
      readonly kind: 'directory';
      readonly path: Buffer;
      readonly mode: number;
      readonly mtimeNs: bigint;
    }
  | {
      readonly kind: 'symlink';
      readonly path: Buffer;
      readonly target: Buffer;
      readonly mtimeNs: bigint;
    }
  | TreeFilePart
  | { readonly kind: 'deleted'; readonly path: Buffer };

/**
 * A file, or a part of one: its parts are written in order, from `offset`. The file gets its name with the part that
 * reaches `size`.
 */
export interface TreeFilePart {
  readonly kind: 'file';
  readonly path: Buffer;
  readonly mode: number;
  readonly mtimeNs: bigint;
  /** Of the whole file. */
  readonly size: number;
  readonly offset: number;
  readonly content: Iterable<TreeContent> | AsyncIterable<TreeContent>;
}

/** An entry that the guest could not write. */
export interface TreeRefusal {
  /** Its number among the entries of the request, from 0. */
  readonly index: number;
  readonly code: string;
}
