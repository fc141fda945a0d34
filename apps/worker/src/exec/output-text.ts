import type { OutputStream } from '@svc/microvm';

/** Turns the chunks of a command's two outputs into text; a character may be spread over several chunks. */
export class OutputText {
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };

  /** The text that this chunk completes; bytes that are no UTF-8 become U+FFFD. */
  add(stream: OutputStream, chunk: Uint8Array): string {
    return this.#decoders[stream].decode(chunk, { stream: true });
  }

  /** What is left of a character that never was completed. */
  end(stream: OutputStream): string {
    return this.#decoders[stream].decode();
  }
}
