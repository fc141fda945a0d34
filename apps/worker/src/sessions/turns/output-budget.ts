import { type AgentFrame, FRAME_ERRORS } from '@svc/contract';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';

const MIB = 1024 * 1024;
/** The output that an agent may produce between two requests of clients, in bytes. */
const TURN_BYTES = 64 * MIB;
/** The limit up to which frames that close a turn are still accepted, in bytes. */
const CLOSING_BYTES = TURN_BYTES + 16 * MIB;
const CLOSING: readonly AgentFrame['type'][] = ['task_started', 'task_completed', 'exit', 'error'];

/**
 * Bounds the output that a guest can make its worker store and send. Only what is stored counts, so that no amount of
 * dropped output takes the room of the frames that close a turn.
 */
export class OutputBudget {
  #bytes = 0;
  /** All output is dropped then, but not what closes a turn, so that a client sees all of it up to one point. */
  #isDropping = false;

  /** Restores the whole budget, for the answer to a client's new request. */
  refill(): void {
    this.#bytes = 0;
    this.#isDropping = false;
  }

  /**
   * The frame to store for a message: its own, or none once output is being dropped. In place of the first dropped one,
   * an error frame with the id of its request.
   */
  admit(
    { frame, bytes }: Extract<NumberedMessage, { type: 'frame' }>,
    wireVersion: 1 | 2,
  ): AgentFrame | undefined {
    if (frame === undefined) return undefined;
    if (this.#hasRoom(frame, bytes)) {
      this.#bytes += bytes;
      return wireVersion === 1 ? withoutAgent(frame) : frame;
    }
    if (this.#isDropping) return undefined;
    this.#isDropping = true;
    const id = requestOf(frame);
    return {
      type: 'error',
      code: 'frame_rate',
      message: FRAME_ERRORS.frame_rate,
      ...(id === undefined ? {} : { id }),
    };
  }

  #hasRoom(frame: AgentFrame, bytes: number): boolean {
    const after = this.#bytes + bytes;
    if (CLOSING.includes(frame.type)) return after <= CLOSING_BYTES;
    return !this.#isDropping && after <= TURN_BYTES;
  }
}

/** The id of the client's request that a frame answers, if it names one. That of a tool's call may be the agent's own. */
function requestOf(frame: AgentFrame): string | undefined {
  if (frame.type === 'tool_call' || frame.type === 'tool_result') return undefined;
  return 'id' in frame ? frame.id : undefined;
}

function withoutAgent(frame: AgentFrame): AgentFrame {
  if (!('agent' in frame)) return frame;
  const { agent: _agent, ...rest } = frame;
  return rest as AgentFrame;
}
