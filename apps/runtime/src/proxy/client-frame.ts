import { FRAME_ERRORS, type FrameErrorCode, LIMITS } from '@svc/contract';
import type { RawData } from 'ws';

/** Receive limit: a larger message closes the connection with 1009. */
export const MAX_MESSAGE_BYTES = 8 * LIMITS.clientFrameBytes;

/** Why a client's message is refused here; undefined if it is forwarded to the worker. */
export function frameProblem(data: Buffer, isBinary: boolean): FrameErrorCode | undefined {
  if (isBinary) return 'frame_binary';
  return data.length > LIMITS.clientFrameBytes ? 'frame_too_large' : undefined;
}

/** The `error` frame for a refused message. It concerns only one connection, so it has no `seq`. */
export function errorFrame(code: FrameErrorCode): string {
  const ts = new Date().toISOString();
  return JSON.stringify({ type: 'error', code, message: FRAME_ERRORS[code], ts });
}

/** The bytes of a message, in one buffer. */
export function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
