import type { UploadResponse } from '@svc/contract';
import { SvcError } from '../errors.ts';
import type { CallOptions, RawAnswer, RequestBody, Transport } from '../transport/request.ts';

/** The content of a file to write. A Node `Readable` is an async iterable. Streams are sent as they are read. */
export type UploadSource = RequestBody;

/** A file being read. `size` is in bytes, undefined if the service did not send it. */
export interface FileDownload {
  readonly size: number | undefined;
  readonly stream: ReadableStream<Uint8Array>;
}

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
      repeatable: typeof source === 'string' || source instanceof Uint8Array,
      defaultTimeoutMs: TRANSFER_TIMEOUT_MS,
      options,
    });
  }

  /** Reads a whole file into memory. */
  async read(id: string, path: string, options?: CallOptions): Promise<Uint8Array> {
    const { response, deadline } = await this.#open(id, path, options);
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      if (deadline.signal.aborted) throw deadline.failure();
      const detail = 'The file was cut off on its way; try again.';
      throw new SvcError({ code: 'stream_ended', detail, status: response.status, cause });
    }
  }

  /** Reads a file as a stream, with backpressure. Cancel the stream to end it early. */
  async readStream(id: string, path: string, options?: CallOptions): Promise<FileDownload> {
    const { response } = await this.#open(id, path, options);
    const length = response.headers.get('content-length');
    return {
      size: length === null ? undefined : Number(length),
      stream: response.body ?? new Blob([]).stream(),
    };
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
