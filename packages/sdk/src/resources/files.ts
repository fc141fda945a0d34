import type { UploadResponse } from '@svc/contract';
import { downloadAll, downloadOf, type FileDownload } from '../transport/download.ts';
import {
  type CallOptions,
  isStream,
  type RawAnswer,
  type RequestBody,
  type Transport,
} from '../transport/request.ts';

/** The content of a file to write. A Node `Readable` is an async iterable. Streams are sent as they are read. */
export type UploadSource = RequestBody;

const TRANSFER_TIMEOUT_MS = 3_600_000;

/** Files of a sandbox. Paths are absolute. */
export class Files {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Writes a file, completely or not at all. Its directory must exist. A failed transfer is retried unless the source
   * is a stream.
   */
  async write(
    id: string,
    path: string,
    source: UploadSource,
    options?: CallOptions,
  ): Promise<UploadResponse> {
    return this.#transport.json({
      method: 'POST',
      path: filesPath(id),
      query: { path },
      headers: { 'content-type': 'application/octet-stream' },
      body: source,
      repeatable: !isStream(source),
      defaultTimeoutMs: TRANSFER_TIMEOUT_MS,
      options,
    });
  }

  /** Reads a whole file into memory. */
  async read(id: string, path: string, options?: CallOptions): Promise<Uint8Array> {
    return downloadAll(await this.#open(id, path, options));
  }

  /** Reads a file as a stream, with backpressure. Cancel the stream to end it early. */
  async readStream(id: string, path: string, options?: CallOptions): Promise<FileDownload> {
    return downloadOf(await this.#open(id, path, options));
  }

  #open(id: string, path: string, options: CallOptions | undefined): Promise<RawAnswer> {
    return this.#transport.raw({
      method: 'GET',
      path: filesPath(id),
      query: { path },
      headers: { accept: 'application/octet-stream' },
      defaultTimeoutMs: TRANSFER_TIMEOUT_MS,
      options,
    });
  }
}

function filesPath(id: string): string {
  return `/v1/sandboxes/${encodeURIComponent(id)}/files`;
}
