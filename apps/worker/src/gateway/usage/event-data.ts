const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const DATA = Buffer.from('data:');

/** Extracts the data of server-sent events from a stream of chunks, without buffering. */
export class EventData {
  readonly #onData: (piece: Buffer) => void;
  readonly #onEvent: () => void;
  /** Number of bytes of `data:` matched at the start of the current line; -1 for another field. */
  #matched = 0;
  #isEmpty = true;

  /** `onData` receives each piece of an event's data; `onEvent` is called at the end of the event. */
  constructor(onData: (piece: Buffer) => void, onEvent: () => void) {
    this.#onData = onData;
    this.#onEvent = onEvent;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#matched === DATA.length || this.#matched === -1) {
        const end = chunk.indexOf(LINE_FEED, at);
        const stop = end === -1 ? chunk.length : end;
        if (this.#matched > 0 && stop > at) this.#onData(chunk.subarray(at, stop));
        if (end !== -1) this.#startLine();
        at = stop + 1;
      } else {
        this.#readStart(chunk[at]);
        at += 1;
      }
    }
  }

  #readStart(byte: number | undefined): void {
    if (byte === LINE_FEED) {
      if (this.#isEmpty) this.#onEvent();
      this.#startLine();
    } else if (byte !== CARRIAGE_RETURN) {
      this.#isEmpty = false;
      this.#matched = byte === DATA[this.#matched] ? this.#matched + 1 : -1;
    }
  }

  #startLine(): void {
    this.#matched = 0;
    this.#isEmpty = true;
  }
}
