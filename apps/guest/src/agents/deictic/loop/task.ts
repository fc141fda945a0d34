import type { AgentFrame } from '@svc/contract';
import type { AgentContext } from '../../agent.ts';
import type { Budget } from './budget.ts';

/** A frame as the one who speaks makes it: who that is, is added. */
export type SpokenFrame = Extract<
  AgentFrame,
  { type: 'text_delta' | 'message' | 'tool_call' | 'tool_result' | 'error' }
>;

/** The task that is being worked on. */
export interface Task {
  readonly budget: Budget;
  /** Aborts when the client interrupts, and when the runtime ends. */
  readonly signal: AbortSignal;
  /** Shows a frame; settles when the line has room for more. Rejects with the reason of `signal`. */
  say(frame: SpokenFrame): Promise<void>;
  /** Shows a frame that closes what was begun, also after an abort. */
  close(frame: SpokenFrame): void;
}

/** Longest piece of text in one frame, in characters. */
const MAX_PIECE_CHARS = 64 * 1024;

export function createTask(
  context: Pick<AgentContext, 'emit' | 'drained'>,
  budget: Budget,
  signal: AbortSignal,
): Task {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  return {
    budget,
    signal,
    async say(frame) {
      signal.throwIfAborted();
      for (const piece of piecesOf(frame)) {
        context.emit(piece);
        await Promise.race([context.drained(), aborted]);
        signal.throwIfAborted();
      }
    },
    close: (frame) => context.emit(frame),
  };
}

function* piecesOf(frame: SpokenFrame): Iterable<SpokenFrame> {
  if (frame.type !== 'text_delta' || frame.data.length <= MAX_PIECE_CHARS) {
    yield frame;
    return;
  }
  for (let at = 0; at < frame.data.length; at += MAX_PIECE_CHARS) {
    yield { ...frame, data: frame.data.slice(at, at + MAX_PIECE_CHARS) };
  }
}
