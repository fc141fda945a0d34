import { addAbortSignal, Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
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
import { isObjectStoreError, ObjectStoreError } from '../object-store-error.ts';
import { putObject } from './put-object.ts';
import { rangeHeaderOf, startOfRange } from './ranges.ts';
import { createS3Client, type S3Settings } from './s3-client.ts';
import { onS3 } from './s3-failures.ts';

/** Of one operation, with its repetitions. */
const OPERATION_MS = 120_000;
/** Of an upload or of the deletion of many objects, which the caller's signal usually bounds. */
const LONG_OPERATION_MS = 3_600_000;
const PING_MS = 10_000;
/** An upload in parts that began so long ago has broken off. */
const LEFTOVER_MS = 24 * 3_600_000;

/** Opens an object store in a bucket of an S3 server. It sends no request yet. */
export function openS3ObjectStore(settings: S3Settings): ObjectStore {
  return new S3ObjectStore(createS3Client(settings), settings.bucket);
}

class S3ObjectStore implements ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(client: S3Client, bucket: string) {
    this.#client = client;
    this.#bucket = bucket;
  }

  async put(key: string, body: ObjectBody, { size, signal }: PutOptions): Promise<void> {
    const target = { client: this.#client, bucket: this.#bucket, key: checked(key) };
    let broken: unknown;
    if (body instanceof Readable) body.once('error', (error) => (broken = error));
    try {
      await onS3(signal, LONG_OPERATION_MS, (limited) => putObject(target, body, size, limited));
    } catch (error) {
      if (body instanceof Readable) body.destroy();
      signal.throwIfAborted();
      throw isAbort(broken) ? error : (broken ?? error);
    }
  }

  async get(key: string, { range, signal }: GetOptions): Promise<StoredObject> {
    const command = new GetObjectCommand({
      ...this.#at(key),
      ...(range === undefined ? {} : { Range: rangeHeaderOf(range) }),
    });
    const found = await onS3(signal, OPERATION_MS, (abortSignal) =>
      this.#client.send(command, { abortSignal }),
    );
    const { Body, ContentLength: length = 0, ContentRange } = found;
    if (!(Body instanceof Readable)) throw new Error('the SDK returned no Node stream');
    const { first, size } = startOfRange(ContentRange) ?? { first: 0, size: length };
    addAbortSignal(signal, Body);
    return { ...infoOf(key, { ...found, Size: size }), first, length, body: Body };
  }

  async copy(from: string, to: string, { etag, signal }: CopyOptions): Promise<void> {
    const source = checkKey(from).map(encodeURIComponent).join('/');
    const command = new CopyObjectCommand({
      ...this.#at(to),
      CopySource: `${this.#bucket}/${source}`,
      CopySourceIfMatch: `"${etag}"`,
    });
    await onS3(signal, LONG_OPERATION_MS, (abortSignal) =>
      this.#client.send(command, { abortSignal }),
    );
  }

  async head(key: string, signal: AbortSignal): Promise<ObjectInfo | undefined> {
    const command = new HeadObjectCommand(this.#at(key));
    try {
      const found = await onS3(signal, OPERATION_MS, (abortSignal) =>
        this.#client.send(command, { abortSignal }),
      );
      return infoOf(key, { ...found, Size: found.ContentLength });
    } catch (error) {
      if (isObjectStoreError(error, 'object_not_found')) return undefined;
      throw error;
    }
  }

  async list(options: ListOptions, signal: AbortSignal): Promise<ObjectPage> {
    const { prefix = '', after, limit } = options;
    checkPrefix(prefix);
    const command = new ListObjectsV2Command({
      Bucket: this.#bucket,
      Prefix: prefix,
      StartAfter: after,
      MaxKeys: Math.min(limit, MAX_PAGE),
    });
    const page = await onS3(signal, OPERATION_MS, (abortSignal) =>
      this.#client.send(command, { abortSignal }),
    );
    const objects = (page.Contents ?? []).map((found) => infoOf(found.Key ?? '', found));
    const next = page.IsTruncated === true ? objects.at(-1)?.key : undefined;
    return next === undefined ? { objects } : { objects, next };
  }

  async delete(keys: readonly string[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const objects = keys.map((key) => ({ Key: checked(key) }));
    for (let start = 0; start < objects.length; start += MAX_PAGE) {
      const part = objects.slice(start, start + MAX_PAGE);
      await onS3(signal, OPERATION_MS, (limited) => this.#deleteSome(part, limited));
    }
  }

  async deletePrefix(prefix: string, signal: AbortSignal): Promise<void> {
    if (checkPrefix(prefix).length === 0) {
      throw new ObjectStoreError('object_key_invalid', 'the prefix of a deletion is empty');
    }
    for (let after: string | undefined; ; ) {
      const page = await this.list({ prefix, after, limit: MAX_PAGE }, signal);
      await this.delete(
        page.objects.map(({ key }) => key),
        signal,
      );
      after = page.next;
      if (after === undefined) return;
    }
  }

  async presignGet(key: string, { expiresSeconds }: PresignOptions = {}): Promise<string> {
    const command = new GetObjectCommand({
      ...this.#at(key),
      // A hosted file never acts as a page of the server's origin.
      ResponseContentDisposition: 'attachment',
      ResponseContentType: 'application/octet-stream',
    });
    return getSignedUrl(this.#client, command, { expiresIn: expiresSeconds ?? PRESIGNED_SECONDS });
  }

  async presignPut(key: string, options: PresignPutOptions = {}): Promise<string> {
    const { size, expiresSeconds = PRESIGNED_SECONDS } = options;
    const command = new PutObjectCommand({
      ...this.#at(key),
      ...(size === undefined ? {} : { ContentLength: size }),
    });
    return getSignedUrl(this.#client, command, { expiresIn: expiresSeconds });
  }

  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const limit = Date.now() - LEFTOVER_MS;
    await onS3(signal, OPERATION_MS, async (abortSignal) => {
      const list = new ListMultipartUploadsCommand({ Bucket: this.#bucket });
      const { Uploads = [] } = await this.#client.send(list, { abortSignal });
      for (const { Key, UploadId, Initiated } of Uploads) {
        if (Initiated === undefined || Initiated.getTime() > limit) continue;
        const abort = new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key, UploadId });
        await this.#client.send(abort, { abortSignal });
      }
    });
  }

  async ping(signal: AbortSignal): Promise<void> {
    const command = new HeadBucketCommand({ Bucket: this.#bucket });
    try {
      await onS3(signal, PING_MS, (abortSignal) => this.#client.send(command, { abortSignal }));
    } catch (error) {
      if (!isObjectStoreError(error, 'object_not_found')) throw error;
      throw new ObjectStoreError('object_store_unavailable', 'the bucket does not exist', {
        cause: error,
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: checked(key) };
  }

  async #deleteSome(objects: { Key: string }[], abortSignal: AbortSignal): Promise<void> {
    const command = new DeleteObjectsCommand({
      Bucket: this.#bucket,
      Delete: { Objects: objects, Quiet: true },
    });
    const { Errors = [] } = await this.#client.send(command, { abortSignal });
    // An object that is not there counts as deleted, although some servers report it.
    const failed = Errors.filter(({ Code }) => Code !== 'NoSuchKey');
    if (failed.length > 0) {
      throw new ObjectStoreError('object_store_unavailable', 'S3 did not delete every object', {
        cause: failed[0],
      });
    }
  }
}

/** Whether a body failed because this store gave it up. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

function checked(key: string): string {
  checkKey(key);
  return key;
}

/** The properties that the answers of S3 have in common. */
interface Properties {
  readonly Size?: number | undefined;
  readonly LastModified?: Date | undefined;
  readonly ETag?: string | undefined;
}

function infoOf(key: string, { Size, LastModified, ETag }: Properties): ObjectInfo {
  return {
    key,
    size: Size ?? 0,
    modifiedAt: LastModified ?? new Date(0),
    etag: (ETag ?? '').replaceAll('"', ''),
  };
}
