import {
  LIMITS,
  type OpenValue,
  type WorkspaceChange,
  type WorkspaceCommit,
  type WorkspaceEntry,
  type WorkspaceRefusal,
} from '@svc/contract';
import type { MicrovmTree, TreeEntry, TreeListing } from '@svc/microvm';
import {
  type HeldSlot,
  Mutex,
  type Rate,
  sleep,
  TokenBucket,
  withDeadline,
} from '@svc/service-kit/concurrency';
import { ChunkStore } from '../chunks/chunk-store.ts';
import type { WorkspaceOwner } from '../control-plane/workspace-api.ts';
import { changeOf, isSame, mtimeMsOf } from './changes.ts';
import { callControlPlane, type WorkspaceDeps } from './deps.ts';
import type { ExtentFinder } from './extents.ts';
import { FileReader } from './file-reader.ts';
import { FlushStaging } from './flush-staging.ts';
import { loadWorkspace } from './load-workspace.ts';
import type { Versions } from './versions.ts';

const MIB = 1024 * 1024;
/** What a lost machine loses, in ms. */
const INTERVAL_MS = 30_000;
/** Writes through memory maps leave no event, so the guest looks at each file this often, in ms. */
const LOOK_MS = 2 * 60_000;
/** One flush, in ms. What it has stored by then is not stored again. */
const FLUSH_MS = 15 * 60_000;
/** What changes while a flush runs is flushed again this often. */
const ROUNDS = 3;
/** More than this is committed in several parts. */
const PART_BYTES = 256 * MIB;
const PART_CHANGES = 20_000;
/** The answer to a commit names all refusals of so many changes. */
const SMALL_PART_CHANGES = 1000;
/** A guest that changes more than this all the time is flushed less often. */
const RATE = { perSecond: 16 * MIB, burst: 1024 * MIB };

/** A change in the guest that is not committed yet. */
type Pending = TreeEntry | { readonly kind: 'deleted'; readonly path: Buffer };

/** Why an entry is not part of the workspace. */
export type Refusal = OpenValue<WorkspaceRefusal | 'unreadable'>;

export interface SandboxWorkspaceOptions {
  readonly owner: WorkspaceOwner;
  readonly tenantId: string;
  readonly deps: WorkspaceDeps;
  readonly tree: MicrovmTree;
  /** Whether the guest runs. A paused one is not flushed. */
  readonly isRunning: () => boolean;
  /** Called with failures that no caller waits for. */
  readonly onFault: (error: unknown, action: string) => void;
  /** Default 30 s. */
  readonly intervalMs?: number;
  /** The guest looks at each file this often. Default 2 min. */
  readonly lookMs?: number;
  /** Bytes that the guest may change before it is flushed less often. */
  readonly rate?: Rate;
}

/**
 * The workspace of one sandbox: loaded before anyone uses the sandbox, flushed regularly and at the end. One flush runs
 * at a time, and sends only what has changed since the last one. Nothing of a flush is visible before it is committed.
 */
export class SandboxWorkspace {
  readonly #options: SandboxWorkspaceOptions;
  readonly #store: ChunkStore<WorkspaceOwner>;
  readonly #flushes = new Mutex();
  readonly #budget: TokenBucket;
  readonly #stopped = new AbortController();
  /** By path in base64url. */
  readonly #versions: Versions = new Map();
  readonly #pending = new Map<string, Pending>();
  /** Files to read again, because a process had them open for writing. */
  readonly #again = new Map<string, TreeEntry>();
  readonly #refused = new Map<string, { readonly reason: Refusal; readonly entry: Pending }>();
  /** Of the last listing that is processed. */
  #generation: string | undefined;
  /** When the guest last looked at each file, in ms of the process clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  #partChanges = PART_CHANGES;
  #running: Promise<void> | undefined;

  constructor(options: SandboxWorkspaceOptions) {
    this.#options = options;
    this.#budget = new TokenBucket(options.rate ?? RATE);
    this.#store = new ChunkStore({
      ...options.deps.chunks,
      owner: options.owner,
      tenantId: options.tenantId,
    });
  }

  /** Why entries of the guest are not part of the workspace, by path in base64url. */
  get refused(): ReadonlyMap<string, Refusal> {
    return new Map([...this.#refused].map(([path, { reason }]) => [path, reason]));
  }

  /**
   * Writes the workspace into the guest. Nobody may use the sandbox before.
   * @throws MicrovmError `disk_full` and others; ControlPlaneError, ObjectTransferError, DamagedChunkError
   */
  async load(signal: AbortSignal): Promise<void> {
    const { deps, owner, tenantId, tree } = this.#options;
    const store = this.#store;
    const load = async (slot: HeldSlot) => {
      await loadWorkspace({ owner, deps, store, tree, versions: this.#versions, slot, signal });
      const request = { limit: LIMITS.workspaceEntries, silent: true };
      const listing = await tree.list(request, signal, (looked) => slot.during(looked));
      this.#generation = listing.generation;
      this.#lookedAt = performance.now();
    };
    await deps.slots.loads.run(load, signal, tenantId);
  }

  /** Flushes regularly from now on, until `finish` or `stop`. */
  start(): void {
    this.#running ??= this.#flushRegularly();
  }

  /** Commits all that has changed. Waits for a flush in progress. @throws like {@link load} */
  flush(signal: AbortSignal): Promise<void> {
    return this.#run(signal, false);
  }

  /** The last flush. Looks at each file, and tries again what did not fit. @throws like {@link load} */
  async finish(signal: AbortSignal): Promise<void> {
    await this.stop();
    for (const [path, { reason, entry }] of this.#refused) {
      const mayFitNow = reason === 'quota_exceeded' || reason === 'too_many_entries';
      if (mayFitNow && !this.#pending.has(path)) this.#pending.set(path, entry);
    }
    await this.#run(signal, true);
  }

  /** Ends the regular flushes, and the one in progress. What it had not committed is pending. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
  }

  async #flushRegularly(): Promise<void> {
    const { intervalMs = INTERVAL_MS, isRunning, onFault } = this.#options;
    const stopped = this.#stopped.signal;
    for (;;) {
      await sleep(Math.max(intervalMs, this.#budget.spend(0)), stopped);
      if (stopped.aborted) return;
      if (!isRunning()) continue;
      try {
        await this.flush(withDeadline(stopped, FLUSH_MS));
      } catch (error) {
        if (!stopped.aborted) onFault(error, 'flush a workspace');
      }
    }
  }

  #run(signal: AbortSignal, full: boolean): Promise<void> {
    return this.#flushes.run(() => this.#flush(signal, full));
  }

  async #flush(signal: AbortSignal, full: boolean): Promise<void> {
    for (const [path, entry] of this.#again) {
      if (!this.#pending.has(path)) this.#pending.set(path, entry);
    }
    this.#again.clear();
    for (let round = 1; round <= ROUNDS; round += 1) {
      await this.#inTurn((slot) => this.#list(slot, signal, full && round === 1), signal);
      let isWhole = true;
      for (const part of this.#takeParts()) {
        await this.#store.ready(signal);
        isWhole =
          (await this.#inTurn((slot) => this.#flushPart(part, slot, signal), signal)) && isWhole;
      }
      if (isWhole && this.#pending.size === 0) return;
    }
  }

  /** Does a step of a flush in a slot, for which the tenants of this worker take turns. */
  #inTurn<T>(step: (slot: HeldSlot) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { deps, tenantId } = this.#options;
    return deps.slots.flushes.run(step, signal, tenantId);
  }

  /** Adds what has changed in the guest to what is pending. */
  async #list(slot: HeldSlot, signal: AbortSignal, isFull: boolean): Promise<void> {
    const { lookMs = LOOK_MS } = this.#options;
    const now = performance.now();
    const full = isFull || now >= this.#lookedAt + lookMs;
    const request = { since: this.#generation, limit: LIMITS.workspaceEntries, full };
    const listing = await this.#options.tree.list(request, signal, (looked) => slot.during(looked));
    if (listing.complete) await this.#compare(listing, signal);
    else {
      for (const entry of listing.changed) this.#pending.set(keyOf(entry.path), entry);
      for (const path of listing.deleted) this.#pending.set(keyOf(path), { kind: 'deleted', path });
    }
    this.#generation = listing.generation;
    if (full) this.#lookedAt = now;
  }

  /**
   * Finds what has changed when neither this worker nor the guest knows: after a restart of the worker. Of two versions
   * the later one stays, and nothing is deleted that this worker did not know.
   */
  async #compare(listing: TreeListing, signal: AbortSignal): Promise<void> {
    const stored = await this.#storedEntries(signal);
    const listed = new Set<string>();
    for (const entry of listing.changed) {
      const key = keyOf(entry.path);
      listed.add(key);
      const other = stored.get(key);
      if (other !== undefined && isSame(entry, other)) this.#versions.set(key, other.version);
      else if (other === undefined || isNewer(entry, other, this.#versions.get(key))) {
        this.#pending.set(key, entry);
      }
    }
    for (const key of this.#versions.keys()) {
      if (listed.has(key)) continue;
      this.#pending.set(key, { kind: 'deleted', path: Buffer.from(key, 'base64url') });
    }
  }

  async #storedEntries(signal: AbortSignal): Promise<ReadonlyMap<string, WorkspaceEntry>> {
    const { deps, owner } = this.#options;
    const stored = new Map<string, WorkspaceEntry>();
    let after: string | undefined;
    do {
      const from = after;
      const page = await callControlPlane(() => deps.api.entries(owner, from, signal), signal);
      // Extents are not needed, and are the larger part.
      for (const entry of page.entries) stored.set(entry.path, withoutExtents(entry));
      after = page.next;
    } while (after !== undefined);
    return stored;
  }

  /** What is pending, in the order of paths, in parts that are committed one after another. */
  #takeParts(): readonly (readonly Pending[])[] {
    const sorted = [...this.#pending.values()].sort((a, b) => a.path.compare(b.path));
    const parts: Pending[][] = [[]];
    let bytes = 0;
    for (const entry of sorted) {
      const size = entry.kind === 'file' ? entry.size : 0;
      let part = parts.at(-1) ?? [];
      const isFull = part.length >= this.#partChanges || (bytes > 0 && bytes + size > PART_BYTES);
      if (isFull) {
        part = [];
        parts.push(part);
        bytes = 0;
      }
      part.push(entry);
      bytes += size;
    }
    return parts.filter((part) => part.length > 0);
  }

  /** Whether all of the part is settled. */
  async #flushPart(
    part: readonly Pending[],
    slot: HeldSlot,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { deps, owner, tree } = this.#options;
    const files = part.filter((entry) => entry.kind === 'file' && entry.size > 0) as TreeEntry[];
    const reader = new FileReader(tree, files);
    await using staging = new FlushStaging({
      api: deps.api,
      owner,
      entries: part,
      isStored: (entry, bytes) => entry.kind !== 'file' || reader.isWithin(entry, bytes),
      changesOf: (entries, finder) => this.#changesOf(entries, reader, finder),
      signal,
    });
    try {
      const stored =
        files.length === 0
          ? []
          : await this.#store.store(
              (limit) => slot.read(reader.stream(limit)),
              signal,
              (chunks) => staging.advance(chunks),
            );
      const result = await staging.commit(stored);
      return this.#settle(part, reader, staging.changes, result);
    } finally {
      this.#budget.spend(reader.bytes);
    }
  }

  /** By path. Leaves out what could not be read, and deletions of what was never stored. */
  #changesOf(
    part: readonly Pending[],
    reader: FileReader,
    finder: ExtentFinder,
  ): Map<string, WorkspaceChange> {
    const changes = new Map<string, WorkspaceChange>();
    for (const entry of part) {
      const key = keyOf(entry.path);
      if (entry.kind === 'deleted') {
        const version = this.#versions.get(key);
        if (version !== undefined) changes.set(key, { kind: 'deleted', path: key, version });
        continue;
      }
      const { status, pieces } = reader.resultOf(entry);
      if (status !== 'complete' && status !== 'open') continue;
      const extents = finder.extentsOf(pieces);
      if (extents.length <= LIMITS.workspaceFileExtents) changes.set(key, changeOf(entry, extents));
    }
    return changes;
  }

  #settle(
    part: readonly Pending[],
    reader: FileReader,
    staged: ReadonlyMap<string, WorkspaceChange>,
    result: WorkspaceCommit | undefined,
  ): boolean {
    const { version = 0, refused = [], refused_count = 0 } = result ?? {};
    if (refused_count > refused.length) {
      // It is unknown which of them were applied. A small part names all its refusals.
      this.#partChanges = SMALL_PART_CHANGES;
      return false;
    }
    const reasons = new Map(refused.map(({ path, reason }) => [path, reason]));
    let isWhole = true;
    for (const entry of part) {
      const key = keyOf(entry.path);
      this.#pending.delete(key);
      this.#refused.delete(key);
      const reason = reasons.get(key);
      if (entry.kind === 'deleted') this.#versions.delete(key);
      else if (reason !== undefined) this.#refused.set(key, { reason, entry });
      else if (staged.has(key)) {
        this.#versions.set(key, version);
        if (reader.resultOf(entry).status === 'open') this.#again.set(key, entry);
      } else if (!this.#isReadLater(entry, reader)) {
        this.#refused.set(key, { reason: 'unreadable', entry });
      } else isWhole = false;
    }
    return isWhole;
  }

  /** Whether the next listing has this file, because it differs from the one that was listed. */
  #isReadLater(entry: TreeEntry, reader: FileReader): boolean {
    const { status } = reader.resultOf(entry);
    return status === 'changed' || status === 'gone';
  }
}

function keyOf(path: Buffer): string {
  return path.toString('base64url');
}

/** A change of the mode leaves no later time, so the guest wins a tie. */
function isNewer(entry: TreeEntry, other: WorkspaceEntry, known: number | undefined): boolean {
  return known === other.version || mtimeMsOf(entry) >= other.mtime_ms;
}

function withoutExtents(entry: WorkspaceEntry): WorkspaceEntry {
  return entry.kind === 'file' ? { ...entry, extents: [] } : entry;
}
