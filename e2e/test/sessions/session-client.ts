import type { ServerFrame, SessionAccess } from '@svc/contract';
import type { SessionConnection, SvcClient } from '@svc/sdk';

/** On an emulated CPU the first turn of a vendor's agent takes a minute, and longer on a busy machine. */
const FRAME_MS = 400_000;

type FrameOf<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;

/** A client of a session that records every frame, and the screenshots apart from the others. */
export class SessionClient {
  readonly frames: ServerFrame[] = [];
  readonly screenshots: Uint8Array[] = [];
  readonly #connection: SessionConnection;
  readonly #reading: Promise<void>;
  #wake = Promise.withResolvers<void>();
  #ended = false;

  private constructor(connection: SessionConnection) {
    this.#connection = connection;
    this.#reading = this.#read();
  }

  /** Attaches and waits for `ready`. */
  static async open(
    sdk: SvcClient,
    session: SessionAccess,
    afterSeq?: number,
  ): Promise<SessionClient> {
    const options = afterSeq === undefined ? {} : { afterSeq };
    return SessionClient.of(sdk.sessions.connect(session, options));
  }

  /** Records the frames of a connection; waits for `ready`. */
  static async of(connection: SessionConnection): Promise<SessionClient> {
    const client = new SessionClient(connection);
    await client.until('ready');
    return client;
  }

  get connection(): SessionConnection {
    return this.#connection;
  }

  /** Sequence numbers of the recorded frames, in order of arrival. */
  get seqs(): number[] {
    return this.frames.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
  }

  /** Runs a task and returns the frames that arrived until it was completed. */
  async task(prompt: string, id: string): Promise<ServerFrame[]> {
    const from = this.frames.length;
    this.#connection.task(prompt, { id });
    await this.until('task_completed', (frame) => frame.id === id);
    return this.frames.slice(from);
  }

  /** Waits for a frame of a type that satisfies `fits`, among the recorded frames from index `from` on; returns the first. */
  async until<T extends ServerFrame['type']>(
    type: T,
    fits: (frame: FrameOf<T>) => boolean = () => true,
    from = 0,
  ): Promise<FrameOf<T>> {
    const isWanted = (frame: ServerFrame): frame is FrameOf<T> =>
      frame.type === type && fits(frame as FrameOf<T>);
    const deadline = AbortSignal.timeout(FRAME_MS);
    for (;;) {
      const found = this.frames.slice(from).find(isWanted);
      if (found !== undefined) return found;
      if (this.#ended) throw new Error(`the connection ended before ${type}: ${this.summary()}`);
      await this.#next(deadline, type);
    }
  }

  /** The recorded frames, shortened, for the message of a failed test. */
  summary(): string {
    return this.frames.map((frame) => JSON.stringify(frame).slice(0, 300)).join('\n');
  }

  async close(): Promise<void> {
    await this.#connection.close();
    await this.#reading;
  }

  async #read(): Promise<void> {
    try {
      for await (const frame of this.#connection) {
        if (frame.type === 'screenshot') this.screenshots.push(frame.data);
        else this.frames.push(frame);
        this.#signal();
      }
    } finally {
      this.#ended = true;
      this.#signal();
    }
  }

  #signal(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  async #next(deadline: AbortSignal, type: string): Promise<void> {
    const late = Promise.withResolvers<never>();
    const onLate = () => late.reject(new Error(`no ${type} frame arrived:\n${this.summary()}`));
    deadline.addEventListener('abort', onLate, { once: true });
    try {
      deadline.throwIfAborted();
      await Promise.race([this.#wake.promise, late.promise]);
    } finally {
      deadline.removeEventListener('abort', onLate);
    }
  }
}

/** The text that the agent streamed in some frames. */
export function textOf(frames: readonly ServerFrame[]): string {
  return frames.map((frame) => (frame.type === 'text_delta' ? frame.data : '')).join('');
}

/** The frames of one type. */
export function framesOf<T extends ServerFrame['type']>(
  frames: readonly ServerFrame[],
  type: T,
): FrameOf<T>[] {
  return frames.filter((frame): frame is FrameOf<T> => frame.type === type);
}
