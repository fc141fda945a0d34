import type { ChunkStorage } from '../src/chunks/chunk-store.ts';

/** Stored chunks in memory, which counts the bytes that a worker would send and receive. */
export class MemoryChunks {
  readonly #objects = new Map<string, Buffer>();
  /** All bytes so far, of transfers and of calls. */
  bytes = 0;
  /** The sizes of all objects. */
  storedBytes = 0;

  readonly api: ChunkStorage<unknown>['api'] = {
    secret: async () => Buffer.alloc(32, 5),
    missing: async (_owner, ids) =>
      this.#counted(
        ids,
        ids.filter((id) => !this.#objects.has(id)),
      ),
    announce: async (_owner, chunks) =>
      new Map(
        this.#counted(
          chunks,
          chunks.map(({ id }) => [id, urlOf(id)] as const),
        ),
      ),
    confirm: async (_owner, ids) => {
      this.#counted(ids, []);
    },
    locate: async (_owner, ids) => new Map(ids.map((id) => [id, urlOf(id)])),
  };

  readonly transfer: ChunkStorage['transfer'] = {
    put: async (url, bytes) => {
      this.bytes += bytes.length;
      this.storedBytes += bytes.length;
      this.#objects.set(url.slice(-ID_CHARS), Buffer.from(bytes));
    },
    get: async (url) => {
      const object = this.#objects.get(url.slice(-ID_CHARS));
      if (object === undefined) throw new Error(`no object at ${url}`);
      return object;
    },
  };

  #counted<T>(request: unknown, answer: T): T {
    this.bytes += JSON.stringify(request).length + JSON.stringify(answer).length;
    return answer;
  }
}

const ID_CHARS = 43;

/** As long as a presigned URL. */
function urlOf(id: string): string {
  return `https://objects.example/${'x'.repeat(400)}/${id}`;
}
