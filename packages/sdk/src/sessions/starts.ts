import type { ClientFrame, FrameErrorCode } from '@svc/contract';
import { lastSeqOf, previousSeqOf, type ReadyFrame, type SessionFrame, seqOf } from './frames.ts';

/** How many sent tasks and commands are remembered; the oldest are forgotten first. */
const MOST_SENT = 1_024;

/** The refusals of the agent itself, which are numbered like its other errors. */
const AGENT_REFUSALS: ReadonlySet<string> = new Set<FrameErrorCode>(['busy', 'task_not_accepted']);

/** Notices that the session was started again, and which tasks and commands its earlier starts have left unanswered. */
export class Starts {
  /** The generation of the newest `ready` that was taken, and that of the newest connection. */
  #taken = 0;
  #current = 0;
  /** The `ready` to be taken next, and the number of the last frame before it. */
  #next: { readonly frame: ReadyFrame; readonly after: number } | undefined;
  /** The generation that each unanswered task or command was sent to, by its id. */
  readonly #sent = new Map<string, number>();

  /** Notes the `ready` frame of a connection. */
  begin(frame: ReadyFrame): void {
    const { generation = 1 } = frame;
    this.#current = generation;
    if (generation <= this.#taken) return;
    // A later start may have saved the answer of a task that this caller has not seen: the replay shows it.
    const newest = previousSeqOf(frame) ?? lastSeqOf(frame) ?? 0;
    this.#next = { frame, after: this.#taken === 0 ? 0 : newest };
  }

  /** Notes a frame that was sent on the newest connection. */
  sent(frame: ClientFrame): void {
    if ((frame.type !== 'task' && frame.type !== 'exec') || frame.id === undefined) return;
    this.#sent.delete(frame.id);
    this.#sent.set(frame.id, this.#current);
    if (this.#sent.size <= MOST_SENT) return;
    const [oldest] = this.#sent.keys();
    if (oldest !== undefined) this.#sent.delete(oldest);
  }

  /** Notes a received frame, which may be an answer. */
  received(frame: SessionFrame): void {
    if (!('id' in frame) || frame.id === undefined) return;
    if (frame.type === 'task_completed' || frame.type === 'exit' || isRefusal(frame)) {
      this.#sent.delete(frame.id);
    }
  }

  /**
   * The `ready` to show now, once for each start: that of the first connection at once, that of a later start behind
   * the frames saved before it. `last`: the number of the last frame that was shown.
   */
  take(last: number | undefined): ReadyFrame | undefined {
    const next = this.#next;
    if (next === undefined || (last !== undefined && last < next.after)) return undefined;
    const isFirst = this.#taken === 0;
    this.#next = undefined;
    this.#taken = this.#current;
    if (isFirst) return next.frame;
    const unanswered = [...this.#sent].flatMap(([id, to]) => (to < this.#current ? [id] : []));
    for (const id of unanswered) this.#sent.delete(id);
    return { ...next.frame, unanswered };
  }
}

/** Whether a frame refuses the one that it answers. Other errors with a number are of a task that goes on. */
function isRefusal(frame: SessionFrame): boolean {
  if (frame.type !== 'error') return false;
  return seqOf(frame) === undefined || AGENT_REFUSALS.has(frame.code);
}
