import type { NumberedMessage } from '../agents/link/guest-messages.ts';
import type { FrameStream } from './frame-stream.ts';
import type { NewFrame } from './journal/format.ts';
import { OutputBudget } from './turns/output-budget.ts';
import type { TurnSaver } from './turns/turn-saver.ts';

export interface GuestOutputOptions {
  readonly frames: FrameStream;
  readonly turns: TurnSaver;
  readonly wireVersion: 1 | 2;
}

/** What comes from the guest of a session: frames are kept and shown, the end of a turn is saved before what follows it. */
export class GuestOutput {
  readonly #options: GuestOutputOptions;
  readonly #budget = new OutputBudget();

  constructor(options: GuestOutputOptions) {
    this.#options = options;
  }

  /** A client has asked for something: there is room for the answer. */
  refill(): void {
    this.#budget.refill();
  }

  /** Deals with messages in order, see `AgentLink`; settles when the guest may be read on. */
  async take(messages: readonly NumberedMessage[], done: (n: number) => void): Promise<void> {
    const { frames, turns, wireVersion } = this.#options;
    let waiting: NewFrame[] = [];
    const flush = async () => {
      const last = waiting.at(-1);
      await frames.keepAtLast(waiting);
      waiting = [];
      if (last !== undefined) done(last.n);
    };
    for (const message of messages) {
      if (message.type === 'frame') {
        const frame = this.#budget.admit(message, wireVersion);
        if (frame !== undefined) waiting.push({ n: message.n, frame });
      } else if (message.type === 'state') {
        await flush();
        await turns.endTurn(message);
        done(message.n);
      }
    }
    await flush();
    done(messages.at(-1)?.n ?? 0);
    // Nothing more is read from the guest until clients have read what there is.
    await frames.caughtUp();
  }
}
