import { setImmediate as turn } from 'node:timers/promises';

type Callback = (time: number) => unknown;

/** Milliseconds between two animation frames. */
export const FRAME_MS = 1000 / 60;

/** The animation frames of a program. Frames follow each other without a pause, each a sixtieth of a second later. */
export class FrameQueue {
  readonly #waiting = new Map<number, Callback>();
  #last = 0;
  #frames = 0;

  /** `requestAnimationFrame` */
  readonly request = (callback: Callback): number => {
    this.#last += 1;
    this.#waiting.set(this.#last, callback);
    return this.#last;
  };

  /** `cancelAnimationFrame` */
  readonly cancel = (handle: number): void => {
    this.#waiting.delete(handle);
  };

  /** Whether a frame is asked for. */
  get pending(): boolean {
    return this.#waiting.size > 0;
  }

  /** The frames drawn so far. */
  get frames(): number {
    return this.#frames;
  }

  /** Draws one frame whose time is `time`. */
  draw(time: number): void {
    this.#frames += 1;
    const callbacks = [...this.#waiting];
    for (const [handle, callback] of callbacks) {
      // A callback may cancel a later one of its frame.
      if (this.#waiting.delete(handle)) callback(time);
    }
  }

  /** Draws frames until none is asked for, at most `most`. */
  async run(most: number): Promise<void> {
    while (this.pending && this.#frames < most) {
      this.draw((this.#frames + 1) * FRAME_MS);
      // Lets what a frame awaits go on before the next one.
      await turn();
    }
  }
}
