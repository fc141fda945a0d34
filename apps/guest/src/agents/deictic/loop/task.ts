import type { AgentFrame } from '@svc/contract';
import type { AgentContext } from '../../agent.ts';
import type { Budget } from './budget.ts';

/** A frame of a working agent. */
export type WorkFrame = Extract<
  AgentFrame,
  { type: 'text_delta' | 'message' | 'tool_call' | 'tool_result' | 'error' }
>;

/** The running task. */
export interface Task {
  readonly budget: Budget;
  /** Aborts when the client interrupts, and when the runtime ends. */
  readonly signal: AbortSignal;
  /** Sends a frame. Settles when the link accepts more. Rejects with the reason of `signal`. */
  send(frame: WorkFrame): Promise<void>;
  /** Sends a closing frame, such as the result of an interrupted tool, even after an abort. */
  close(frame: WorkFrame): void;
}

/** Longest text delta of one frame, in characters. */
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
    async send(frame) {
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

function* piecesOf(frame: WorkFrame): Iterable<WorkFrame> {
  if (frame.type !== 'text_delta' || frame.data.length <= MAX_PIECE_CHARS) {
    yield frame;
    return;
  }
  for (let at = 0; at < frame.data.length; at += MAX_PIECE_CHARS) {
    yield { ...frame, data: frame.data.slice(at, at + MAX_PIECE_CHARS) };
  }
}
