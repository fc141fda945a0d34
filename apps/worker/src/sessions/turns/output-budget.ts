import { type AgentFrame, FRAME_ERRORS } from '@svc/contract';
import type { NumberedMessage } from '../../agents/link/guest-messages.ts';

const MIB = 1024 * 1024;
/** What an agent may say until a client asks it something new, in bytes. */
const TURN_BYTES = 64 * MIB;
/** Beyond that, what closes a turn is still taken up to here. */
const CLOSING_BYTES = TURN_BYTES + 16 * MIB;
const CLOSING: readonly AgentFrame['type'][] = ['task_started', 'task_completed', 'exit', 'error'];

/** Bounds what a guest can make its worker write and send. */
export class OutputBudget {
  #bytes = 0;
  #complained = false;

  /** A client has asked for something: there is room for the answer again. */
  refill(): void {
    this.#bytes = 0;
    this.#complained = false;
  }

  /** The frame to keep for this message: its own, the error that the rest is dropped, or none. */
  admit(
    { frame, bytes }: Extract<NumberedMessage, { type: 'frame' }>,
    wireVersion: 1 | 2,
  ): AgentFrame | undefined {
    if (frame === undefined) return undefined;
    this.#bytes += bytes;
    const limit = CLOSING.includes(frame.type) ? CLOSING_BYTES : TURN_BYTES;
    if (this.#bytes <= limit) return wireVersion === 1 ? withoutAgent(frame) : frame;
    if (this.#complained) return undefined;
    this.#complained = true;
    return { type: 'error', code: 'frame_rate', message: FRAME_ERRORS.frame_rate };
  }
}

function withoutAgent(frame: AgentFrame): AgentFrame {
  if (!('agent' in frame)) return frame;
  const { agent: _agent, ...rest } = frame;
  return rest as AgentFrame;
}
