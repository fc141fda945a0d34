import {
  type ChunkKeys,
  chunkIdOf,
  cutIntoChunks,
  DamagedChunkError,
  deriveChunkKeys,
  openChunk,
  sealChunk,
} from '@svc/chunks';
import { type FilesManifest, LIMITS } from '@svc/contract';
import { retry, Slots } from '@svc/service-kit/concurrency';
import type { ChunksApi } from '../control-plane/chunks-api.ts';
import { mayPass } from '../control-plane/control-plane-transport.ts';
import {
  type ObjectTransfer,
  ObjectTransferError,
  transferMayPass,
} from '../control-plane/object-transfer.ts';
import type { ChunksOwner } from '../control-plane/session-chunks-api.ts';
import type { ByteRates } from '../rates/byte-rates.ts';
import { BackgroundTasks } from './background-tasks.ts';

const MIB = 1024 * 1024;
/** Chunks are looked up and uploaded in batches, while the next ones are read. */
const BATCH_BYTES = 4 * MIB;
/** A second batch uses the time in which the first one waits for answers. With the next one, three are in memory. */
const BATCHES_AT_ONCE = 2;
/** Less than this is not uploaded early. */
const EARLY_BYTES = MIB;
const BATCH_CHUNKS = 128;
/** Chunks that are encrypted and uploaded, or downloaded and decrypted, at once. */
const CHUNKS_AT_ONCE = 8;
const READ_BATCH = 64;
/** Encryption adds fewer bytes than this. */
const SEALING_BYTES = 64;
/** For brief failures. A save that fails is repeated as a whole, and then uploads only what is missing. */
const ATTEMPTS = 3;

/** What the chunk stores of a worker share. */
export interface ChunkStorage<Owner = ChunksOwner> {
  readonly api: Pick<ChunksApi<Owner>, 'secret' | 'missing' | 'announce' | 'confirm' | 'locate'>;
  readonly transfer: Pick<ObjectTransfer, 'get' | 'put'>;
  /**
   * Bounds the saves that run at once, and so the memory that they need. Tenants take turns, also while a save waits for its
   * guest: until the guest sends more, such a save needs only what it has not uploaded yet.
   */
  readonly saves: Slots;
  readonly rates: Pick<ByteRates, 'ready' | 'spend'>;
}

export interface ChunkStoreOptions<Owner> extends ChunkStorage<Owner> {
  readonly owner: Owner;
  readonly tenantId: string;
}

/** A stored piece of a stream. */
export interface StoredChunk {
  readonly id: string;
  /** In bytes, of the content. */
  readonly length: number;
}

/**
 * Saves the files of one session or workspace as encrypted chunks, and reads them back. Only chunks that are not stored yet are
 * uploaded. Memory is bounded however large the files are.
 */
export class ChunkStore<Owner = ChunksOwner> {
  readonly #options: ChunkStoreOptions<Owner>;
  #keys: ChunkKeys | undefined;

  constructor(options: ChunkStoreOptions<Owner>) {
    this.#options = options;
  }

  /** Settles when the tenant may save: after it has saved very much, it waits. @throws the reason of the signal */
  ready(signal: AbortSignal): Promise<void> {
    return this.#options.rates.ready(this.#options.tenantId, signal);
  }

  /** Fetches the keys, which the first save or read needs. @throws ControlPlaneError */
  async prepare(signal: AbortSignal): Promise<void> {
    await this.#loadKeys(signal);
  }

  /**
   * Stores the stream that `open` opens, after {@link ready}. Returns what the commit of a turn, within an hour, names it
   * by.
   * @throws ControlPlaneError, ObjectTransferError, and the errors of the stream
   */
  async save(
    open: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<FilesManifest> {
    const stored = await this.store(open, signal);
    const size = stored.reduce((sum, { length }) => sum + length, 0);
    return { size_bytes: size, chunks: stored.map(({ id }) => id) };
  }

  /**
   * Stores the stream that `open` opens, after {@link ready}. Returns its chunks in order, which stay stored for an hour.
   * @param onStored called with the first chunks of the stream as they are stored, each time with more of them
   * @throws ControlPlaneError, ObjectTransferError, and the errors of the stream
   */
  store(
    open: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    onStored: (chunks: readonly StoredChunk[]) => void = () => undefined,
  ): Promise<readonly StoredChunk[]> {
    const { saves, tenantId } = this.#options;
    return saves.run(
      (slot) => this.#store(slot.read(open(signal)), signal, onStored),
      signal,
      tenantId,
    );
  }

  /**
   * The stream that was saved, verified chunk by chunk.
   * @throws DamagedChunkError when a chunk is missing or not what was saved; ControlPlaneError, ObjectTransferError
   */
  async *read(manifest: FilesManifest, signal: AbortSignal): AsyncGenerator<Buffer> {
    let size = 0;
    for await (const chunk of this.readChunks(manifest.chunks, signal)) {
      size += chunk.length;
      yield chunk;
    }
    if (size !== manifest.size_bytes) {
      throw new DamagedChunkError(
        `The stored files have ${size} bytes, not ${manifest.size_bytes}.`,
      );
    }
  }

  /** The contents of these chunks, in order and verified. @throws like {@link read} */
  async *readChunks(all: readonly string[], signal: AbortSignal): AsyncGenerator<Buffer> {
    const keys = await this.#loadKeys(signal);
    for (let at = 0; at < all.length; at += READ_BATCH) {
      yield* this.#readBatch(all.slice(at, at + READ_BATCH), keys, signal);
    }
  }

  async #store(
    source: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    onStored: (chunks: readonly StoredChunk[]) => void,
  ): Promise<readonly StoredChunk[]> {
    const keys = await this.#loadKeys(signal);
    const stored: StoredChunk[] = [];
    const seen = new Set<string>();
    let batch = new Map<string, Buffer>();
    let waiting = 0;
    let before: Promise<void> = Promise.resolve();
    await using uploads = new BackgroundTasks(BATCHES_AT_ONCE, signal);
    const upload = async () => {
      const [full, upTo, previous] = [batch, stored.length, before];
      [batch, waiting] = [new Map(), 0];
      await uploads.start((limit) => {
        const run = async () => {
          await this.#storeMissing(full, keys, limit);
          // What is stored is told from the start of the stream on.
          await previous;
          onStored(stored.slice(0, upTo));
        };
        before = run();
        return before;
      });
    };
    for await (const chunk of cutIntoChunks(source, keys.gear)) {
      signal.throwIfAborted();
      const id = chunkIdOf(chunk, keys);
      stored.push({ id, length: chunk.length });
      if (seen.has(id)) continue;
      seen.add(id);
      batch.set(id, chunk);
      waiting += chunk.length;
      const isEnough = waiting >= (uploads.hasRoom ? EARLY_BYTES : BATCH_BYTES);
      if (isEnough || batch.size >= BATCH_CHUNKS) await upload();
    }
    if (batch.size > 0) await upload();
    await uploads.finished();
    return stored;
  }

  async *#readBatch(
    ids: readonly string[],
    keys: ChunkKeys,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const { api, owner } = this.#options;
    const urls = await this.#call(() => api.locate(owner, [...new Set(ids)], signal), signal);
    // Ends the transfers ahead when the reader stops early.
    const stopped = new AbortController();
    const limit = AbortSignal.any([signal, stopped.signal]);
    const ahead: Promise<Buffer>[] = [];
    const fetchNext = (index: number) => {
      const id = ids[index];
      if (id === undefined) return;
      const chunk = this.#fetch(id, urls.get(id), keys, limit);
      // It is awaited in its turn.
      chunk.catch(() => undefined);
      ahead.push(chunk);
    };
    try {
      for (let index = 0; index < CHUNKS_AT_ONCE; index += 1) fetchNext(index);
      for (let index = 0; index < ids.length; index += 1) {
        yield await (ahead.shift() as Promise<Buffer>);
        fetchNext(index + CHUNKS_AT_ONCE);
      }
    } finally {
      stopped.abort();
    }
  }

  async #fetch(
    id: string,
    url: string | undefined,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { transfer } = this.#options;
    if (url === undefined) throw new Error(`the control plane sent no URL for the chunk ${id}`);
    const maxBytes = LIMITS.chunkBytes + SEALING_BYTES;
    try {
      const retries = { attempts: ATTEMPTS, signal, isTransient: transferMayPass };
      const sealed = await retry(() => transfer.get(url, maxBytes, signal), retries);
      return await openChunk(sealed, id, keys);
    } catch (error) {
      if (!(error instanceof ObjectTransferError && error.status === 404)) throw error;
      throw new DamagedChunkError(`The stored chunk ${id} is missing.`, { cause: error });
    }
  }

  async #storeMissing(
    batch: ReadonlyMap<string, Buffer>,
    keys: ChunkKeys,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, owner, rates, tenantId } = this.#options;
    const missing = await this.#call(() => api.missing(owner, [...batch.keys()], signal), signal);
    if (missing.length === 0) return;
    const slots = new Slots(CHUNKS_AT_ONCE);
    const sealed = new Map<string, Buffer>();
    await Promise.all(
      missing.map((id) =>
        slots.run(async () => {
          const plain = batch.get(id);
          if (plain === undefined) throw new Error('the control plane misses an unknown chunk');
          sealed.set(id, await sealChunk(plain, id, keys));
        }, signal),
      ),
    );
    const chunks = [...sealed].map(([id, bytes]) => ({ id, stored_bytes: bytes.length }));
    const urls = await this.#call(() => api.announce(owner, chunks, signal), signal);
    // Before the upload, so that one that fails counts, and each attempt.
    rates.spend(
      tenantId,
      chunks.reduce((sum, { stored_bytes }) => sum + stored_bytes, 0),
    );
    await this.#upload(urls, sealed, signal);
    await this.#call(() => api.confirm(owner, missing, signal), signal);
  }

  async #upload(
    urls: ReadonlyMap<string, string>,
    sealed: ReadonlyMap<string, Buffer>,
    signal: AbortSignal,
  ): Promise<void> {
    const { transfer } = this.#options;
    const slots = new Slots(CHUNKS_AT_ONCE);
    // The first failure ends the others, so that nothing runs on after this call.
    const failed = new AbortController();
    const limit = AbortSignal.any([signal, failed.signal]);
    const uploads = [...urls].map(([id, url]) =>
      slots.run(async () => {
        const bytes = sealed.get(id);
        if (bytes === undefined) throw new Error('the control plane asks for an unknown chunk');
        await retry(() => transfer.put(url, bytes, limit), { attempts: ATTEMPTS, signal: limit });
      }, limit),
    );
    try {
      await Promise.all(uploads);
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled(uploads);
      throw error;
    }
  }

  async #loadKeys(signal: AbortSignal): Promise<ChunkKeys> {
    const { api, owner } = this.#options;
    this.#keys ??= deriveChunkKeys(await this.#call(() => api.secret(owner, signal), signal));
    return this.#keys;
  }

  #call<T>(call: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return retry(call, { attempts: ATTEMPTS, signal, isTransient: mayPass });
  }
}
