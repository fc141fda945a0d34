import type { OutputStream } from '@svc/microvm';

/** Decodes the chunks of a command's two outputs. A character may be split over several chunks. */
export class OutputDecoder {
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

  /** The text completed by this chunk. Invalid UTF-8 becomes U+FFFD. */
  add(stream: OutputStream, chunk: Uint8Array): string {
    return this.#decoders[stream].decode(chunk, { stream: true });
  }

  /** The remains of an incomplete character, as U+FFFD. */
  end(stream: OutputStream): string {
    return this.#decoders[stream].decode();
  }
}
