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
import { changeOf, isSame, keyOf, mtimeMsOf } from './changes.ts';
import { callControlPlane, type WorkspaceDeps } from './deps.ts';
import type { ExtentFinder } from './extents.ts';
import { FileReader } from './file-reader.ts';
import { FlushStaging } from './flush-staging.ts';
import { loadWorkspace } from './load-workspace.ts';
import { type PendingChange, PendingChanges } from './pending-changes.ts';
import { Versions } from './versions.ts';

const MIB = 1024 * 1024;
/** What a lost machine loses, in ms. */
const INTERVAL_MS = 30_000;
/** Writes through memory maps leave no event, so the guest looks at each file this often, in ms. */
const LOOK_MS = 2 * 60_000;
/** One flush, in ms. What it has stored by then is not stored again. */
const FLUSH_MS = 15 * 60_000;
/** What changes while a flush runs is flushed again this often. */
const ROUNDS = 3;
/** A guest that has more entries than a workspace may have, because others empty its workspace, starts anew. */
const MOST_VERSIONS = 2 * LIMITS.workspaceEntries;
/** Refusals that are remembered. */
const REFUSALS = 1000;
/** A guest that changes more than this all the time is flushed less often. */
const RATE = { perSecond: 16 * MIB, burst: 1024 * MIB };

/** Why an entry is not part of the workspace. */
export type Refusal = OpenValue<WorkspaceRefusal | 'unreadable' | 'path_too_long'>;

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
  readonly #versions = new Versions();
  readonly #pending = new PendingChanges();
  readonly #refused = new Map<string, Refusal>();
  /** Of the last listing that is processed. Without it, the next listing is complete. */
  #generation: string | undefined;
  /** When the guest last looked at each file, in ms of the process clock. */
  #lookedAt = Number.NEGATIVE_INFINITY;
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

  /** Why entries of the guest are not part of the workspace, by path in base64url: the first thousand. */
  get refused(): ReadonlyMap<string, Refusal> {
    return this.#refused;
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
    const reasons = [...this.#refused.values()];
    const mayFitNow = reasons.includes('quota_exceeded') || reasons.includes('too_many_entries');
    // A complete listing finds again whatever is not stored.
    if (mayFitNow || reasons.length === REFUSALS) this.#generation = undefined;
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
    try {
      await this.#flushRounds(signal, full);
    } finally {
      this.#boundMemory();
    }
  }

  async #flushRounds(signal: AbortSignal, full: boolean): Promise<void> {
    this.#pending.begin();
    for (let round = 1; round <= ROUNDS; round += 1) {
      await this.#inTurn((slot) => this.#list(slot, signal, full && round === 1), signal);
      let isWhole = true;
      for (const part of this.#pending.parts()) {
        await this.#store.ready(signal);
        isWhole =
          (await this.#inTurn((slot) => this.#flushPart(part, slot, signal), signal)) && isWhole;
      }
      if (isWhole && this.#pending.isEmpty && this.#generation !== undefined) return;
    }
  }

  /** A guest that breaks off each flush must not make this worker remember all paths that it has ever listed. */
  #boundMemory(): void {
    if (this.#versions.size > MOST_VERSIONS) {
      this.#versions.clear();
      this.#forgetPending();
    } else if (this.#pending.isTooLarge) this.#forgetPending();
  }

  /** The next listing is complete, and finds it again. */
  #forgetPending(): void {
    this.#pending.clear();
    this.#generation = undefined;
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
    const listed = listing.changed.length + listing.deleted.length;
    if (!this.#pending.hasRoomFor(listed)) {
      this.#forgetPending();
      if (!listing.complete) return;
    }
    if (listing.complete) await this.#compare(listing, signal);
    else {
      for (const entry of listing.changed) this.#addChanged(keyOf(entry.path), entry);
      for (const path of listing.deleted) this.#pending.add({ kind: 'deleted', path });
    }
    this.#generation = listing.generation;
    if (full) this.#lookedAt = now;
  }

  /** A long path that is stored can be compressed. */
  #addChanged(key: string, entry: TreeEntry): void {
    const isStorable = entry.path.length <= LIMITS.storedPathBytes || this.#versions.has(key);
    if (isStorable) this.#pending.add(entry);
    else this.#refuse(key, 'path_too_long');
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
        this.#addChanged(key, entry);
      }
    }
    for (const key of stored.keys()) {
      if (listed.has(key) || !this.#versions.has(key)) continue;
      this.#pending.add({ kind: 'deleted', path: Buffer.from(key, 'base64url') });
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

  /** Whether all of the part is settled. */
  async #flushPart(
    part: readonly PendingChange[],
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
    part: readonly PendingChange[],
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
    part: readonly PendingChange[],
    reader: FileReader,
    staged: ReadonlyMap<string, WorkspaceChange>,
    result: WorkspaceCommit | undefined,
  ): boolean {
    const { version = 0, refused = [], refused_count = 0 } = result ?? {};
    if (refused_count > refused.length) {
      // It is unknown which of them were applied. A small part names all its refusals.
      this.#pending.useSmallParts();
      return false;
    }
    const reasons = new Map(refused.map(({ path, reason }) => [path, reason]));
    let isWhole = true;
    for (const entry of part) {
      const key = keyOf(entry.path);
      this.#pending.remove(entry);
      this.#refused.delete(key);
      const reason = reasons.get(key);
      if (entry.kind === 'deleted') this.#versions.delete(key);
      else if (reason !== undefined) this.#refuse(key, reason);
      else if (staged.has(key)) {
        this.#versions.set(key, version);
        if (reader.resultOf(entry).status === 'open') this.#pending.readAgain(entry);
      } else if (!this.#isReadLater(entry, reader)) {
        this.#refuse(key, 'unreadable');
      } else isWhole = false;
    }
    return isWhole;
  }

  #refuse(key: string, reason: Refusal): void {
    if (this.#refused.size < REFUSALS) this.#refused.set(key, reason);
  }

  /** Whether the next listing has this file, because it differs from the one that was listed. */
  #isReadLater(entry: TreeEntry, reader: FileReader): boolean {
    const { status } = reader.resultOf(entry);
    return status === 'changed' || status === 'gone';
  }
}

/** A change of the mode leaves no later time, so the guest wins a tie. */
function isNewer(entry: TreeEntry, other: WorkspaceEntry, known: number | undefined): boolean {
  return known === other.version || mtimeMsOf(entry) >= other.mtime_ms;
}

function withoutExtents(entry: WorkspaceEntry): WorkspaceEntry {
  return entry.kind === 'file' ? { ...entry, extents: [] } : entry;
}
