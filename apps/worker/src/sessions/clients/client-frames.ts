import { ClientFrame, FRAME_ERRORS, type FrameErrorCode, LIMITS } from '@svc/contract';
import { frameReader, parseUntrusted } from '../../agents/link/frame-reader.ts';

/** A larger message closes the connection; one up to this size is answered with an error, in bytes. */
export const MAX_MESSAGE_BYTES = 8 * LIMITS.clientFrameBytes;

export type ParsedFrame =
  | { readonly frame: ClientFrame }
  | { readonly error: Extract<FrameErrorCode, `frame_${string}`> };

const readFrame = frameReader<ClientFrame>(ClientFrame);

/** Parses a client's message: its frame, or the code of the error to answer with. */
export function parseClientFrame(data: Buffer, isBinary: boolean): ParsedFrame {
  if (isBinary) return { error: 'frame_binary' };
  if (data.length > LIMITS.clientFrameBytes) return { error: 'frame_too_large' };
  const frame = readFrame(parseUntrusted(data));
  return frame === undefined ? { error: 'frame_invalid' } : { frame };
}

/** The JSON of an `error` frame about a client's own frame, with the id of that; it has no number. `ts`: the current time. */
export function errorFrame(code: FrameErrorCode, ts: string, id?: string): string {
  return JSON.stringify({ type: 'error', code, message: FRAME_ERRORS[code], id, ts });
}
