import type { Budget } from '@svc/service-kit/concurrency';
import type { AcceptedWebSocket } from '@svc/service-kit/websocket';
import { type CloseReason, MESSAGE_TOO_SLOW, TOO_MUCH_UNFINISHED } from './close-codes.ts';
import { closeSocket } from './close-socket.ts';

/** What a chunk costs on top of its bytes while it is kept. */
const CHUNK_BYTES = 256;
/** Header and mask of a client's control frame. */
const CONTROL_HEAD_BYTES = 6;

export interface UnfinishedMessageLimits {
  /** From the first bytes of a message to its last, in milliseconds. Does not end while the client is not read. */
  readonly messageMs: number;
  /** Bytes of unfinished messages, shared by all clients of a tenant. */
  readonly budget: Budget;
  /** Time for the client to answer the close, in milliseconds. */
  readonly closeGraceMs: number;
}

/**
 * Closes a client that takes too long to finish a message, or for whose unfinished message the budget has no room. `ws` keeps
 * the fragments of a message until it is complete, and answered pings say nothing about that.
 * A flood of control frames whose ends are not those of chunks counts as unfinished, too.
 */
export function limitUnfinishedMessage(
  { ws, socket }: AcceptedWebSocket,
  { messageMs, budget, closeGraceMs }: UnfinishedMessageLimits,
): void {
  /** What has arrived since the last message, and the part of it that control frames were. */
  let received = 0;
  let control = 0;
  let isFinished = false;
  let taken = 0;
  let late: NodeJS.Timeout | undefined;
  const close = (reason: CloseReason) => {
    if (ws.readyState === ws.OPEN) closeSocket(ws, reason, closeGraceMs);
    else ws.terminate();
  };
  const reset = () => {
    budget.give(taken);
    clearTimeout(late);
    received = control = taken = 0;
    late = undefined;
  };
  const onLate = () => {
    if (ws.isPaused) late?.refresh();
    else close(MESSAGE_TOO_SLOW);
  };
  const onControl = (data: Buffer) => {
    control += CONTROL_HEAD_BYTES + data.length;
  };
  const onMessage = () => {
    isFinished = true;
  };
  // `ws` listens since before, so it has handled the chunk. What follows a message in the same chunk is not counted.
  const onData = (chunk: Buffer) => {
    received += chunk.length;
    if (isFinished || received <= control) reset();
    else {
      late ??= setTimeout(onLate, messageMs);
      // A control frame between fragments shares its chunk with them, so its bytes are kept, too.
      const wanted = chunk.length + CHUNK_BYTES;
      const got = budget.take(wanted);
      taken += got;
      if (got < wanted) close(TOO_MUCH_UNFINISHED);
    }
    isFinished = false;
  };
  // After an error, `ws` keeps nothing more.
  const stop = () => socket.off('data', onData);
  ws.on('ping', onControl).on('pong', onControl).on('message', onMessage);
  ws.once('error', stop).once('close', () => {
    stop();
    reset();
  });
  socket.on('data', onData);
}
