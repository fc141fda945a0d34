import { withDeadline } from '@svc/service-kit/concurrency';
import { Agent, request } from 'undici';

export interface ObjectTransferOptions {
  /** Base URL of the control plane, to which URLs without a host are relative. */
  readonly url: string;
  /** PEM of the only CA trusted for the control plane; undefined: the system's CAs. */
  readonly ca: string | undefined;
  /** Called with each transfer that failed. Cancelled ones have not failed. */
  readonly onFailure?: (operation: TransferOperation) => void;
}

type TransferOperation = 'get' | 'put';

const CONNECTIONS = 16;
const CONNECT_MS = 5_000;
/** For one object, which has at most a few megabytes. */
const TRANSFER_MS = 30_000;

/** The object store did not accept or return an object. */
export class ObjectTransferError extends Error {
  override readonly name = 'ObjectTransferError';
  /** What it answered; undefined if it could not be reached or did not answer in time. */
  readonly status: number | undefined;

  constructor(status: number | undefined, options?: ErrorOptions) {
    super(`the object store ${status === undefined ? 'failed' : `answered ${status}`}`, options);
    this.status = status;
  }
}

/** The object is larger than the caller's limit. */
export class ObjectTooLargeError extends ObjectTransferError {
  constructor() {
    super(undefined, { cause: new Error('the object is larger than it can be') });
  }
}

/**
 * Transfers objects by the URLs that the control plane hands out, which are all the authority that they need: the
 * worker's own credential is not sent. Each transfer has a time limit; none is retried here.
 */
export class ObjectTransfer {
  readonly #base: URL;
  readonly #controlPlane: Agent;
  readonly #elsewhere: Agent;
  readonly #onFailure: (operation: TransferOperation) => void;

  constructor({ url, ca, onFailure = () => undefined }: ObjectTransferOptions) {
    const limits = { connections: CONNECTIONS };
    const connect = { timeout: CONNECT_MS };
    this.#base = new URL(url);
    this.#onFailure = onFailure;
    this.#controlPlane = new Agent({
      ...limits,
      connect: { ...connect, ...(ca === undefined ? {} : { ca }) },
    });
    this.#elsewhere = new Agent({ ...limits, connect });
  }

  /** @throws ObjectTransferError, or the reason of the signal */
  put(url: string, bytes: Buffer, signal: AbortSignal): Promise<void> {
    return this.#run('put', signal, () => this.#put(url, bytes, signal));
  }

  /**
   * The bytes of an object.
   * @throws ObjectTransferError, ObjectTooLargeError for one of more than `maxBytes`, or the reason of the signal
   */
  get(url: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    return this.#run('get', signal, () => this.#get(url, maxBytes, {}, signal));
  }

  /** Bytes `start` to `end` of an object, without `end`. @throws ObjectTransferError */
  async getRange(url: string, start: number, end: number, signal: AbortSignal): Promise<Buffer> {
    return this.#run('get', signal, async () => {
      const range = { range: `bytes=${start}-${end - 1}` };
      const bytes = await this.#get(url, end - start, range, signal);
      if (bytes.length !== end - start) throw new Error('the object is shorter than it was');
      return bytes;
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#controlPlane.destroy(), this.#elsewhere.destroy()]);
  }

  /** Reports whatever a transfer fails of as an {@link ObjectTransferError}. */
  async #run<T>(
    operation: TransferOperation,
    signal: AbortSignal,
    transfer: () => Promise<T>,
  ): Promise<T> {
    try {
      return await transfer();
    } catch (cause) {
      signal.throwIfAborted();
      this.#onFailure(operation);
      throw cause instanceof ObjectTransferError
        ? cause
        : new ObjectTransferError(undefined, { cause });
    }
  }

  async #put(url: string, bytes: Buffer, signal: AbortSignal): Promise<void> {
    const { statusCode, body } = await request(this.#target(url), {
      dispatcher: this.#dispatcher(url),
      method: 'PUT',
      headers: {
        'content-type': 'application/octet-stream',
        'content-length': String(bytes.length),
      },
      body: bytes,
      signal: withDeadline(signal, TRANSFER_MS),
    });
    await body.dump();
    if (statusCode >= 300) throw new ObjectTransferError(statusCode);
  }

  async #get(
    url: string,
    maxBytes: number,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const { statusCode, body } = await request(this.#target(url), {
      dispatcher: this.#dispatcher(url),
      method: 'GET',
      headers,
      signal: withDeadline(signal, TRANSFER_MS),
    });
    if (statusCode >= 300) {
      await body.dump();
      throw new ObjectTransferError(statusCode);
    }
    const parts: Buffer[] = [];
    let length = 0;
    // Leaving the loop destroys the body.
    for await (const part of body as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > maxBytes) throw new ObjectTooLargeError();
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  #target(url: string): URL {
    return new URL(url, this.#base);
  }

  #dispatcher(url: string): Agent {
    return this.#target(url).origin === this.#base.origin ? this.#controlPlane : this.#elsewhere;
  }
}

/** Whether a retry of a transfer that failed like this may succeed. A URL that is refused may have expired. */
export function transferMayPass(error: unknown): boolean {
  return !(error instanceof ObjectTransferError) || error.status !== 404;
}
