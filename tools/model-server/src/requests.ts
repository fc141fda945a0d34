import type { IncomingHttpHeaders } from 'node:http';
import type { DialectName } from './dialects/index.ts';

/** A request that a model server received. */
export interface RecordedRequest {
  /** Undefined for a path without a dialect. */
  readonly dialect: DialectName | undefined;
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The parsed body if it is JSON, otherwise its text; undefined if it is empty. */
  readonly body: unknown;
}

/** Limits of the log. Older requests are dropped first. */
const MAX_REQUESTS = 1000;
const MAX_BYTES = 64 * 1024 * 1024;

/** A log of the latest requests, oldest first. */
export class RequestLog {
  readonly list: RecordedRequest[] = [];
  readonly #sizes: number[] = [];
  #bytes = 0;

  /** Adds a request whose body has `size` bytes. */
  add(request: RecordedRequest, size: number): void {
    this.list.push(request);
    this.#sizes.push(size);
    this.#bytes += size;
    while (this.list.length > MAX_REQUESTS || (this.#bytes > MAX_BYTES && this.list.length > 1)) {
      this.list.shift();
      this.#bytes -= this.#sizes.shift() ?? 0;
    }
  }
}
