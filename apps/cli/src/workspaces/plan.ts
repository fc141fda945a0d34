/** A file on either side, under its path relative to what is synchronised. */
export interface SyncedFile {
  readonly size: number;
  /** In milliseconds since the epoch. */
  readonly modifiedMs: number;
}

/** The files of one side by their paths. */
export type Listing = ReadonlyMap<string, SyncedFile>;

/** What makes the target like the source. */
export interface SyncPlan {
  /** Paths to copy, in order. */
  readonly copies: readonly string[];
  /** Paths to delete in the target, in order; they are deleted before anything is copied. */
  readonly deletions: readonly string[];
  readonly unchanged: number;
  /** Of all copies. */
  readonly bytes: number;
}

/**
 * Compares two sides. A file is copied if the target lacks it, has it with another size, or has an older one. With
 * `deletes`, files that only the target has are deleted, except for those at or under `kept`.
 */
export function planSync(
  source: Listing,
  target: Listing,
  { deletes, kept = [] }: { readonly deletes: boolean; readonly kept?: readonly string[] },
): SyncPlan {
  const copies = [...source].filter(([path, file]) => differs(file, target.get(path)));
  const isKept = (path: string) =>
    kept.some((other) => path === other || path.startsWith(`${other}/`));
  const surplus = deletes
    ? [...target.keys()].filter((path) => !source.has(path) && !isKept(path))
    : [];
  return {
    copies: copies.map(([path]) => path).sort(),
    deletions: surplus.sort(),
    unchanged: source.size - copies.length,
    bytes: copies.reduce((sum, [, { size }]) => sum + size, 0),
  };
}

function differs(source: SyncedFile, target: SyncedFile | undefined): boolean {
  return (
    target === undefined ||
    target.size !== source.size ||
    // Workspaces keep times to the millisecond, and file systems return them as fractions.
    Math.round(source.modifiedMs) > Math.round(target.modifiedMs)
  );
}
