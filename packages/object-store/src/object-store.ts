import type { Readable } from 'node:stream';

/**
 * Stores immutable or replaceable objects under keys, in a directory or in S3. It knows nothing of tenants or HTTP.
 *
 * A key is a path of `/`-separated components: see {@link checkKey}. Keys are made by the service; a name that a
 * customer chose belongs into the database. All methods throw an `ObjectStoreError`, or the reason of `signal`.
 */
export interface ObjectStore extends AsyncDisposable {
  /**
   * Stores an object, replacing one of the same key. Readers see the old or the new object, never a part. On return,
   * the object survives a crash of the machine. A stream is destroyed on failure.
   * @throws ObjectStoreError `object_size_mismatch` when the body does not have exactly `size` bytes
   */
  put(key: string, body: ObjectBody, options: PutOptions): Promise<void>;
  /**
   * Opens an object for reading. The caller reads the body to its end or destroys it.
   * @throws ObjectStoreError `object_not_found`; `object_range_invalid` for a range that begins beyond the end
   */
  get(key: string, options: GetOptions): Promise<StoredObject>;
  /**
   * Copies an object within the store, replacing one at `to`, if it still has this tag.
   * @throws ObjectStoreError `object_not_found`; `object_changed` when it has another tag
   */
  copy(from: string, to: string, options: CopyOptions): Promise<void>;
  /** The properties of an object, or undefined if it does not exist. */
  head(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined>;
  /** One page of the objects whose keys start with a prefix, in the order of the UTF-8 bytes of their keys. */
  list(options: ListOptions, signal: AbortSignal): Promise<ObjectPage>;
  /** Deletes objects. A key without an object counts as deleted. */
  delete(keys: readonly string[], signal: AbortSignal): Promise<void>;
  /** Deletes every object whose key starts with `prefix`, which is not empty and ends in `/`. */
  deletePrefix(prefix: string, signal: AbortSignal): Promise<void>;
  /** A URL with which anyone can GET an object until it expires, in whole or in ranges. */
  presignGet(key: string, options?: PresignOptions): Promise<string>;
  /** A URL with which anyone can PUT an object until it expires. The request needs a Content-Length. */
  presignPut(key: string, options?: PresignPutOptions): Promise<string>;
  /** Removes what uploads that broke off have left behind, once it is old enough to belong to none in progress. */
  removeLeftovers(signal: AbortSignal): Promise<void>;
  /** Settles when the store can be used. @throws ObjectStoreError `object_store_unavailable` */
  ping(signal: AbortSignal): Promise<void>;
}

/** The content of an object. */
export type ObjectBody = Readable | Uint8Array;

export interface PutOptions {
  /** Number of bytes of the body. */
  readonly size: number;
  readonly signal: AbortSignal;
}

export interface GetOptions {
  /** The part to read; default: the whole object. */
  readonly range?: ObjectRange | undefined;
  /** Also ends the reading of the body. */
  readonly signal: AbortSignal;
}

export interface CopyOptions {
  /** Tag of the content to copy. */
  readonly etag: string;
  readonly signal: AbortSignal;
}

/** Bytes `first` to `last`, both inclusive and cut to the object's end, or the last `suffix` bytes. */
export type ObjectRange =
  | { readonly first: number; readonly last?: number | undefined }
  | { readonly suffix: number };

export interface ObjectInfo {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  readonly modifiedAt: Date;
  /** Changes with the content; without quotation marks. */
  readonly etag: string;
}

/** An object that is open for reading. */
export interface StoredObject extends ObjectInfo {
  readonly body: Readable;
  /** Position of the body's first byte in the object. */
  readonly first: number;
  /** Number of bytes of the body. */
  readonly length: number;
}

export interface ListOptions {
  /** Empty, or ends in `/`. Default: every object. */
  readonly prefix?: string;
  /** Lists only keys after this one, which need not exist. */
  readonly after?: string | undefined;
  /** 1 to 1000. */
  readonly limit: number;
}

export interface ObjectPage {
  readonly objects: readonly ObjectInfo[];
  /** The `after` of the next page; absent on the last one. */
  readonly next?: string;
}

export interface PresignOptions {
  /** Default {@link PRESIGNED_SECONDS}. */
  readonly expiresSeconds?: number;
}

export interface PresignPutOptions extends PresignOptions {
  /** The only size in bytes that the upload may have; default: any that the store accepts. */
  readonly size?: number;
}

/** Default validity of a presigned URL. */
export const PRESIGNED_SECONDS = 900;
/** Largest page of a listing. */
export const MAX_PAGE = 1000;
