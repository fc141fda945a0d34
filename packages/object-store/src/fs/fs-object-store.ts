import { randomUUID } from 'node:crypto';
import {
  link,
  lstat,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkKey, checkPrefix } from '../object-key.ts';
import {
  type CopyOptions,
  type GetOptions,
  type ListOptions,
  MAX_PAGE,
  type ObjectBody,
  type ObjectInfo,
  type ObjectPage,
  type ObjectStore,
  PRESIGNED_SECONDS,
  type PresignOptions,
  type PresignPutOptions,
  type PutOptions,
  type StoredObject,
} from '../object-store.ts';
import { ObjectStoreError } from '../object-store-error.ts';
import { directoryOf, fileOf } from './file-names.ts';
import { isMissing, isNotEmpty, onFiles, unlessMissing } from './fs-failures.ts';
import { placeObject, refuseLinks } from './place-object.ts';
import { infoOf, readObject } from './read-object.ts';
import type { SignedUrls } from './signed-urls.ts';
import { walk } from './walk.ts';
import { writeObject } from './write-object.ts';

/** A file that no upload has written to for so long belongs to one that broke off. */
const LEFTOVER_MS = 6 * 3_600_000;

export interface FsObjectStoreOptions {
  /** Made if it does not exist. Several processes of one machine may share it. */
  readonly directory: string;
  /** Issues the presigned URLs, which the owner of the store serves. */
  readonly urls: SignedUrls;
}

/**
 * Opens an object store in a directory: complete objects under `keys/`, uploads in progress under `incoming/`.
 * @throws ObjectStoreError `object_store_unavailable`
 */
export async function openFsObjectStore({
  directory,
  urls,
}: FsObjectStoreOptions): Promise<ObjectStore> {
  return onFiles(new AbortController().signal, async () => {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const root = await realpath(directory);
    const keys = join(root, 'keys');
    const incoming = join(root, 'incoming');
    await mkdir(keys, { recursive: true, mode: 0o700 });
    await mkdir(incoming, { recursive: true, mode: 0o700 });
    return new FsObjectStore(keys, incoming, urls);
  });
}

class FsObjectStore implements ObjectStore {
  readonly #keys: string;
  readonly #incoming: string;
  readonly #urls: SignedUrls;

  constructor(keys: string, incoming: string, urls: SignedUrls) {
    this.#keys = keys;
    this.#incoming = incoming;
    this.#urls = urls;
  }

  async put(key: string, body: ObjectBody, options: PutOptions): Promise<void> {
    const target = this.#fileOf(key);
    const temporary = this.#temporary();
    try {
      await writeObject(temporary, body, options);
      await onFiles(options.signal, () => placeObject(temporary, target, this.#keys));
    } catch (error) {
      if (!(body instanceof Uint8Array)) body.destroy();
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async get(key: string, options: GetOptions): Promise<StoredObject> {
    const path = this.#fileOf(key);
    return onFiles(options.signal, async () => {
      try {
        return await readObject(key, path, options);
      } catch (error) {
        if (!isMissing(error)) throw error;
        throw new ObjectStoreError('object_not_found', 'the object does not exist');
      }
    });
  }

  /** The copy shares its bytes with the original, which is safe because no file is ever changed in place. */
  async copy(from: string, to: string, { etag, signal }: CopyOptions): Promise<void> {
    const [source, target] = [this.#fileOf(from), this.#fileOf(to)];
    const temporary = this.#temporary();
    try {
      await onFiles(signal, async () => {
        await this.#link(source, temporary);
        if ((await infoOfFile(from, temporary))?.etag !== etag) {
          throw new ObjectStoreError('object_changed', 'the object has changed');
        }
        await placeObject(temporary, target, this.#keys);
      });
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async head(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined> {
    const path = this.#fileOf(key);
    return onFiles(signal, async () => {
      await unlessMissing(refuseLinks(dirname(path)));
      return infoOfFile(key, path);
    });
  }

  async list(options: ListOptions, signal: AbortSignal): Promise<ObjectPage> {
    const { prefix = '', after = '', limit } = options;
    const directory = join(this.#keys, directoryOf(checkPrefix(prefix)));
    const most = Math.min(limit, MAX_PAGE);
    const objects: ObjectInfo[] = [];
    return onFiles(signal, async () => {
      for await (const { key, path } of walk(directory, prefix, after, signal)) {
        const info = await infoOfFile(key, path);
        if (info === undefined) continue;
        if (objects.length === most) return { objects, next: objects.at(-1)?.key ?? after };
        objects.push(info);
      }
      return { objects };
    });
  }

  async delete(keys: readonly string[], signal: AbortSignal): Promise<void> {
    for (const path of keys.map((key) => this.#fileOf(key))) {
      await onFiles(signal, () => this.#remove(path));
    }
  }

  async deletePrefix(prefix: string, signal: AbortSignal): Promise<void> {
    const components = checkPrefix(prefix);
    if (components.length === 0) {
      throw new ObjectStoreError('object_key_invalid', 'the prefix of a deletion is empty');
    }
    const directory = join(this.#keys, directoryOf(components));
    const removed = this.#temporary();
    await onFiles(signal, async () => {
      try {
        await refuseLinks(dirname(directory));
        await rename(directory, removed);
      } catch (error) {
        if (isMissing(error)) return;
        throw error;
      }
      await rm(removed, { recursive: true, force: true });
      await this.#prune(dirname(directory));
    });
  }

  async presignGet(key: string, options: PresignOptions = {}): Promise<string> {
    return this.#urls.sign({ method: 'GET', key, expires: expiryOf(options) });
  }

  async presignPut(key: string, options: PresignPutOptions = {}): Promise<string> {
    const { size } = options;
    return this.#urls.sign({ method: 'PUT', key, expires: expiryOf(options), size });
  }

  async removeLeftovers(signal: AbortSignal): Promise<void> {
    await onFiles(signal, async () => {
      for (const name of await readdir(this.#incoming)) {
        signal.throwIfAborted();
        const path = join(this.#incoming, name);
        if (await isOlderThan(path, LEFTOVER_MS)) await rm(path, { recursive: true, force: true });
      }
    });
  }

  async ping(signal: AbortSignal): Promise<void> {
    await onFiles(signal, () => stat(this.#keys));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing is open between two calls.
  }

  #fileOf(key: string): string {
    return join(this.#keys, fileOf(checkKey(key)));
  }

  async #link(source: string, temporary: string): Promise<void> {
    try {
      await refuseLinks(dirname(source));
      await link(source, temporary);
    } catch (error) {
      if (!isMissing(error)) throw error;
      throw new ObjectStoreError('object_not_found', 'the object does not exist');
    }
  }

  #temporary(): string {
    return join(this.#incoming, randomUUID());
  }

  async #remove(path: string): Promise<void> {
    try {
      await refuseLinks(dirname(path));
      await unlink(path);
    } catch (error) {
      if (!isMissing(error)) throw error;
      return;
    }
    await this.#prune(dirname(path));
  }

  /** Removes a directory and those above it as far as they are empty. */
  async #prune(lowest: string): Promise<void> {
    for (let directory = lowest; directory !== this.#keys; directory = dirname(directory)) {
      try {
        await rmdir(directory);
      } catch (error) {
        if (isNotEmpty(error) || isMissing(error)) return;
        throw error;
      }
    }
  }
}

/** Undefined for a file that is missing or is none. */
async function infoOfFile(key: string, path: string): Promise<ObjectInfo | undefined> {
  const stats = await unlessMissing(lstat(path));
  return stats?.isFile() ? infoOf(key, stats) : undefined;
}

async function isOlderThan(path: string, ms: number): Promise<boolean> {
  const stats = await unlessMissing(lstat(path));
  return stats !== undefined && Date.now() - stats.mtimeMs > ms;
}

function expiryOf({ expiresSeconds = PRESIGNED_SECONDS }: PresignOptions): number {
  return Math.floor(Date.now() / 1000) + expiresSeconds;
}
