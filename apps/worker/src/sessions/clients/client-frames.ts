import { ClientFrame, FRAME_ERRORS, type FrameErrorCode, LIMITS } from '@svc/contract';
import { isTooDeep } from '@svc/service-kit';
import { frameReader } from '../../agents/link/frame-reader.ts';

export type ReadFrame =
  | { readonly frame: ClientFrame }
  | { readonly error: Extract<FrameErrorCode, `frame_${string}`> };

const read = frameReader<ClientFrame>(ClientFrame);

/** What a client sent, or what is wrong with it. */
export function readClientFrame(data: Buffer, isBinary: boolean): ReadFrame {
  if (isBinary) return { error: 'frame_binary' };
  if (data.length > LIMITS.clientFrameBytes) return { error: 'frame_too_large' };
  const text = data.toString('utf8');
  if (isTooDeep(text)) return { error: 'frame_invalid' };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return { error: 'frame_invalid' };
    throw error;
  }
  const frame = read(value);
  return frame === undefined ? { error: 'frame_invalid' } : { frame };
}

/** The `error` frame about a client's own frame, for that client only. `ts`: now, as records carry it. */
export function errorFrame(code: FrameErrorCode, ts: string): string {
  return JSON.stringify({ type: 'error', code, message: FRAME_ERRORS[code], ts });
}
