import {
  type WorkspaceChange,
  WorkspaceChanges,
  type WorkspaceCommit,
  type WorkspaceEntry,
  type WorkspaceRefusal,
} from '@svc/contract';
import { Slots } from '@svc/service-kit/concurrency';
import { Compile } from 'typebox/compile';
import { saveRates } from '../src/chunks/save-rates.ts';
import { ControlPlaneError } from '../src/control-plane/control-plane-transport.ts';
import type { WorkspaceDeps } from '../src/workspace/deps.ts';
import { MemoryChunks } from './memory-chunks.ts';

const isChanges = Compile(WorkspaceChanges);

/** A workspace of the control plane, in memory: entries, chunks, and flushes that are staged and committed. */
export class MemoryWorkspace {
  readonly chunks = new MemoryChunks();
  readonly entries = new Map<string, WorkspaceEntry>();
  /** Plain objects, by path in base64url. */
  readonly objects = new Map<string, Buffer>();
  readonly staged = new Map<string, Map<string, WorkspaceChange>>();
  /** The changes of each commit. */
  readonly commits: (readonly WorkspaceChange[])[] = [];
  /** Entries in one page. */
  pageSize = 1000;
  /** Called before each call is served. */
  onCall: (operation: string) => void | Promise<void> = () => undefined;
  /** Why a change is not applied. */
  refuse: (path: string) => WorkspaceRefusal | undefined = () => undefined;
  version = 0;

  readonly deps: WorkspaceDeps = {
    slots: { loads: new Slots(2), flushes: new Slots(2) },
    chunks: {
      api: this.chunks.api,
      transfer: this.chunks.transfer,
      saves: new Slots(2),
      rates: saveRates(Number.MAX_SAFE_INTEGER),
    },
    objects: {
      getRange: async (url, start, end) => {
        await this.onCall('object');
        const object = this.objects.get(url);
        if (object === undefined) throw new Error('no such object');
        return object.subarray(start, end);
      },
    },
    api: {
      entries: async (_owner, after) => {
        await this.onCall('entries');
        const sorted = [...this.entries.values()].sort((a, b) =>
          bytesOf(a.path).compare(bytesOf(b.path)),
        );
        const start = after === undefined ? 0 : sorted.findIndex(({ path }) => path === after) + 1;
        const entries = sorted.slice(start, start + this.pageSize);
        const last = entries.at(-1);
        const isLast = start + entries.length >= sorted.length || last === undefined;
        return { entries: structuredClone(entries), ...(isLast ? {} : { next: last.path }) };
      },
      objects: async (_owner, paths) => {
        await this.onCall('objects');
        return paths.flatMap((path) => {
          const entry = this.entries.get(path);
          if (entry?.kind !== 'file' || entry.extents !== undefined) return [];
          return [{ path, version: entry.version, size: entry.size, url: path }];
        });
      },
      stage: async (_owner, flushId, changes) => {
        await this.onCall('stage');
        if (!isChanges.Check({ generation: 1, changes })) {
          throw new ControlPlaneError(400, 'validation_failed');
        }
        for (const id of this.staged.keys()) if (id !== flushId) this.staged.delete(id);
        const flush = this.staged.get(flushId) ?? new Map<string, WorkspaceChange>();
        this.staged.set(flushId, flush);
        for (const change of changes) flush.set(change.path, change);
      },
      commit: async (_owner, flushId) => {
        await this.onCall('commit');
        const flush = this.staged.get(flushId);
        if (flush === undefined) throw new ControlPlaneError(409, 'workspace_flush_closed');
        this.staged.delete(flushId);
        return this.#apply([...flush.values()]);
      },
    },
  };

  /** Puts a file that a customer uploaded. */
  upload(path: string, content: Buffer): void {
    const key = Buffer.from(path).toString('base64url');
    this.version += 1;
    this.objects.set(key, content);
    this.entries.set(key, {
      kind: 'file',
      path: key,
      mode: 0o644,
      mtime_ms: 1_600_000_000_000,
      size: content.length,
      version: this.version,
    });
  }

  /** The paths of all entries. */
  get paths(): string[] {
    return [...this.entries.keys()].map((path) => bytesOf(path).toString('latin1')).sort();
  }

  #apply(changes: readonly WorkspaceChange[]): WorkspaceCommit {
    this.commits.push(changes);
    this.version += 1;
    const refused: WorkspaceCommit['refused'] = [];
    for (const change of changes) {
      const { path } = change;
      const old = this.entries.get(path);
      const isOther =
        change.kind === 'deleted' && old !== undefined && old.version !== change.version;
      const reason = isOther ? 'changed' : this.refuse(bytesOf(path).toString());
      if (reason !== undefined) refused.push({ path, reason });
      else if (change.kind === 'deleted') this.entries.delete(path);
      else this.entries.set(path, { ...change, version: this.version });
    }
    return {
      version: this.version,
      refused_count: refused.length,
      refused: refused.slice(0, 1000),
    };
  }
}

function bytesOf(path: string): Buffer {
  return Buffer.from(path, 'base64url');
}
