import { addAbortSignal, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { exactly } from '../exactly.ts';
import type { ObjectBody } from '../object-store.ts';

const MIB = 1024 * 1024;
/** Smaller bodies are sent in one request, which can be repeated, from memory. */
const PART_BYTES = 8 * MIB;
/** Parts of one upload that are in memory at once. */
const PARTS_AT_ONCE = 2;
/** S3's limit. */
const MOST_PARTS = 10_000;

/** Where an upload goes. */
export interface PutTarget {
  readonly client: S3Client;
  readonly bucket: string;
  readonly key: string;
}

/** Stores a body of exactly `size` bytes. An error of the body passes as it is. */
export async function putObject(
  target: PutTarget,
  body: ObjectBody,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  const chunks = Readable.from(exactly(body, size));
  if (!(body instanceof Uint8Array)) addAbortSignal(signal, body);
  if (size <= PART_BYTES) await putAtOnce(target, await buffer(chunks), signal);
  else await putInParts(target, chunks, size, signal);
}

async function putAtOnce(
  { client, bucket, key }: PutTarget,
  content: Buffer,
  abortSignal: AbortSignal,
): Promise<void> {
  const command = new PutObjectCommand({ Bucket: bucket, Key: key, Body: content });
  await client.send(command, { abortSignal });
}

/** The object appears when the last part has been received. The parts of a failed upload are removed. */
async function putInParts(
  { client, bucket, key }: PutTarget,
  chunks: Readable,
  size: number,
  signal: AbortSignal,
): Promise<void> {
  const abortController = new AbortController();
  const abort = () => abortController.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    await new Upload({
      client,
      params: { Bucket: bucket, Key: key, Body: chunks },
      partSize: Math.max(PART_BYTES, Math.ceil(size / MOST_PARTS)),
      queueSize: PARTS_AT_ONCE,
      abortController,
    }).done();
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
