import { FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';

/** Longest detail that an `error` frame repeats. */
const DETAIL_CHARS = 2_000;

/** Why a turn failed, in the words of the session's `error` frames. */
export class AgentFailure extends Error {
  readonly code: FrameErrorCode;

  /** `detail` is what the CLI says of it. */
  constructor(code: FrameErrorCode, detail = '') {
    // What a vendor says of a refused key may repeat parts of it.
    const told = code === 'llm_unauthorized' ? '' : detail.trim().slice(0, DETAIL_CHARS);
    super(told === '' ? FRAME_ERRORS[code] : `${FRAME_ERRORS[code]} ${told}`);
    this.name = 'AgentFailure';
    this.code = code;
  }
}

/** What the status of a failed answer of the gateway means. */
export function codeOfStatus(status: number): FrameErrorCode {
  if (status === 401 || status === 403) return 'llm_unauthorized';
  if (status === 429) return 'llm_rate_limited';
  if (status === 503 || status === 529) return 'llm_overloaded';
  return status >= 500 || status === 408 ? 'llm_unavailable' : 'llm_refused';
}
