import type { WorkspaceExtent } from '@svc/contract';
import type { TreeContent } from '@svc/microvm';
import type { ChunkStore } from '../chunks/chunk-store.ts';
import type { WorkspaceOwner } from '../control-plane/workspace-api.ts';

/** Chunks kept for the files that follow. A chunk has at most 1 MiB. */
const KEPT = 32;

/** Names the chunks that were used last. The plan of downloads and the downloads forget in the same order. */
class Recent<T> {
  readonly #kept = new Map<string, T>();

  get(id: string): T | undefined {
    const value = this.#kept.get(id);
    if (value !== undefined) {
      this.#kept.delete(id);
      this.#kept.set(id, value);
    }
    return value;
  }

  add(id: string, value: T): void {
    this.#kept.set(id, value);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}

/** Reads the extents of files in a known order, and downloads chunks ahead. Holds a few chunks, however many there are. */
export class ChunkWindow {
  readonly #downloads: AsyncGenerator<Buffer>;
  readonly #recent = new Recent<Buffer>();

  /** @param extents all that will be read, in order */
  constructor(
    store: Pick<ChunkStore<WorkspaceOwner>, 'readChunks'>,
    extents: Iterable<WorkspaceExtent>,
    signal: AbortSignal,
  ) {
    this.#downloads = store.readChunks(planDownloads(extents), signal);
  }

  /** The content of the next extent. @throws the errors of ChunkStore.read */
  async read({ id, offset = 0, length }: WorkspaceExtent): Promise<TreeContent> {
    if (id === undefined) return { hole: length };
    const chunk = this.#recent.get(id) ?? (await this.#next(id));
    if (offset + length > chunk.length) throw new Error(`the chunk ${id} is too short`);
    return chunk.subarray(offset, offset + length);
  }

  /** Ends the downloads. */
  async close(): Promise<void> {
    await this.#downloads.return(undefined);
  }

  async #next(id: string): Promise<Buffer> {
    const { done, value } = await this.#downloads.next();
    if (done === true) throw new Error('an extent is read that was not announced');
    this.#recent.add(id, value);
    return value;
  }
}

/** The chunks that are not among the recent ones when they are needed. */
function planDownloads(extents: Iterable<WorkspaceExtent>): string[] {
  const recent = new Recent<true>();
  const plan: string[] = [];
  for (const { id } of extents) {
    if (id === undefined || recent.get(id) === true) continue;
    recent.add(id, true);
    plan.push(id);
  }
  return plan;
}
