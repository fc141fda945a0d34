import { FRAME_ERRORS, type FrameErrorCode, LIMITS } from '@svc/contract';
import type { RawData } from 'ws';

/** Larger messages are not even received: the connection ends with 1009. */
export const LONGEST_MESSAGE_BYTES = 8 * LIMITS.clientFrameBytes;

/** Why a client's message is answered here and goes no further; undefined: it is the worker's to judge. */
export function frameProblem(data: Buffer, isBinary: boolean): FrameErrorCode | undefined {
  if (isBinary) return 'frame_binary';
  return data.length > LIMITS.clientFrameBytes ? 'frame_too_large' : undefined;
}

/** The `error` frame that answers a refused message. It concerns one connection, so it has no `seq`. */
export function errorFrame(code: FrameErrorCode): string {
  const ts = new Date().toISOString();
  return JSON.stringify({ type: 'error', code, message: FRAME_ERRORS[code], ts });
}

/** The bytes of a message, in one piece. */
export function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
