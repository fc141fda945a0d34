import { type AgentFrame, FRAME_ERRORS } from '@svc/contract';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';

const MIB = 1024 * 1024;
/** The output that an agent may produce between two requests of clients, in bytes. */
const TURN_BYTES = 64 * MIB;
/** The limit up to which frames that close a turn are still accepted, in bytes. */
const CLOSING_BYTES = TURN_BYTES + 16 * MIB;
const CLOSING: readonly AgentFrame['type'][] = ['task_started', 'task_completed', 'exit', 'error'];

/** Bounds the output that a guest can make its worker store and send. */
export class OutputBudget {
  #bytes = 0;
  #reported = false;

  /** Restores the whole budget, for the answer to a client's new request. */
  refill(): void {
    this.#bytes = 0;
    this.#reported = false;
  }

  /** The frame to store for a message: its own, one error frame once output is being dropped, or none. */
  admit(
    { frame, bytes }: Extract<NumberedMessage, { type: 'frame' }>,
    wireVersion: 1 | 2,
  ): AgentFrame | undefined {
    if (frame === undefined) return undefined;
    this.#bytes += bytes;
    const limit = CLOSING.includes(frame.type) ? CLOSING_BYTES : TURN_BYTES;
    if (this.#bytes <= limit) return wireVersion === 1 ? withoutAgent(frame) : frame;
    if (this.#reported) return undefined;
    this.#reported = true;
    return { type: 'error', code: 'frame_rate', message: FRAME_ERRORS.frame_rate };
  }
}

function withoutAgent(frame: AgentFrame): AgentFrame {
  if (!('agent' in frame)) return frame;
  const { agent: _agent, ...rest } = frame;
  return rest as AgentFrame;
}
