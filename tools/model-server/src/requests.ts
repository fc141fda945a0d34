import type { IncomingHttpHeaders } from 'node:http';
import type { DialectName } from './dialects/index.ts';

/** A request that came to a model server. */
export interface RecordedRequest {
  /** Undefined for what no dialect answers. */
  readonly dialect: DialectName | undefined;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Parsed where it is JSON, else the text; undefined when there is none. */
  readonly body: unknown;
}

/** What is kept at most: older requests go first. */
const MAX_REQUESTS = 1000;
const MAX_BYTES = 64 * 1024 * 1024;

/** The latest requests, oldest first. */
export class RequestLog {
  readonly list: RecordedRequest[] = [];
  readonly #sizes: number[] = [];
  #bytes = 0;

  /** `size` is the length of the body in bytes. */
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
