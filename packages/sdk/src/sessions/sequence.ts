import { SvcError } from '../errors.ts';
import { lastSeqOf, previousSeqOf, type SessionFrame, seqOf } from './frames.ts';

/** Ensures that every numbered frame is delivered once and in order, across connections. */
export class Sequence {
  #last: number | undefined;
  /** Whether the first frame may have any number, because earlier ones are no longer kept. */
  #takesAnyFirst: boolean;

  /** `after`: the number of the last frame seen; 0 for the earliest that is kept; undefined for live frames alone. */
  constructor(after: number | undefined) {
    this.#last = after;
    this.#takesAnyFirst = after === undefined || after === 0;
  }

  /** The number of the last delivered frame, after which a new connection continues. */
  get last(): number | undefined {
    return this.#last;
  }

  /** Records the number after which a connection is live, from its `ready` frame. */
  begin(ready: SessionFrame): void {
    const newest = lastSeqOf(ready);
    if (newest === undefined) return;
    // A number that the session has not reached is none after which it continues.
    if (this.#last === undefined || newest < this.#last) this.#last = newest;
    if (this.#last === newest) this.#takesAnyFirst = false;
  }

  /**
   * Whether a frame is new. Frames without a number always are.
   * @throws SvcError `frames_lost` when frames before it are missing
   */
  take(frame: SessionFrame): boolean {
    const seq = seqOf(frame);
    if (seq === undefined) return true;
    const last = this.#last;
    if (last !== undefined && seq <= last) return false;
    // Lower where the numbers jump: this caller may have seen frames that the session lost with its machine.
    const previous = previousSeqOf(frame) ?? seq - 1;
    if (last !== undefined && previous > last && !this.#takesAnyFirst) {
      throw new SvcError({
        code: 'frames_lost',
        detail: `The frames from ${last + 1} to ${previous} are not kept any more; connect again with afterSeq: 0 for the earliest that are.`,
      });
    }
    this.#takesAnyFirst = false;
    this.#last = seq;
    return true;
  }
}
