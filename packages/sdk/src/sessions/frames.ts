import type { ServerFrame } from '@svc/contract';

/** An image of the desktop, in sessions with a desktop. */
export interface ScreenshotFrame {
  readonly type: 'screenshot';
  /** PNG or JPEG. */
  readonly data: Uint8Array;
}

/** The `ready` frame that a connection yields first, and again when the session was started again. */
export type ReadyFrame = Extract<ServerFrame, { type: 'ready' }> & {
  /**
   * Not on the first: the ids of the tasks and commands that were sent to an earlier start of the session and not
   * answered. Nobody works on them any more.
   */
  readonly unanswered?: readonly string[];
};

/** A frame that a connection yields. A newer service may send additional types. */
export type SessionFrame = Exclude<ServerFrame, { type: 'ready' }> | ReadyFrame | ScreenshotFrame;

/** The frame in a message of the service; undefined if the message is not a frame. */
export function frameOf(message: string | Uint8Array): SessionFrame | undefined {
  if (typeof message !== 'string') return { type: 'screenshot', data: message };
  try {
    const value: unknown = JSON.parse(message);
    const isFrame = typeof value === 'object' && value !== null && 'type' in value;
    return isFrame ? (value as ServerFrame) : undefined;
  } catch {
    return undefined;
  }
}

/** The number of a frame; undefined for a frame that concerns only this connection. */
export function seqOf(frame: SessionFrame): number | undefined {
  return 'seq' in frame && typeof frame.seq === 'number' ? frame.seq : undefined;
}

/**
 * The number of the frame before one whose number jumps; of a `ready` frame, that of the newest frame, if the next one
 * will jump. Undefined for any other frame.
 */
export function previousSeqOf(frame: SessionFrame): number | undefined {
  return 'previous_seq' in frame && typeof frame.previous_seq === 'number'
    ? frame.previous_seq
    : undefined;
}

/** The number of the newest frame at the time of the connection. */
export function lastSeqOf(frame: SessionFrame): number | undefined {
  return 'last_seq' in frame && typeof frame.last_seq === 'number' ? frame.last_seq : undefined;
}
