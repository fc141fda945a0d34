import { FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';

/** Longest detail that an `error` frame repeats. */
const DETAIL_CHARS = 2_000;

/** The failure of a turn. Its message is that of the session's `error` frame. */
export class AgentFailure extends Error {
  readonly code: FrameErrorCode;

  /** `detail` is the CLI's own message. */
  constructor(code: FrameErrorCode, detail = '') {
    // A vendor's message about a refused key may repeat parts of it.
    const shown = code === 'llm_unauthorized' ? '' : detail.trim().slice(0, DETAIL_CHARS);
    super(shown === '' ? FRAME_ERRORS[code] : `${FRAME_ERRORS[code]} ${shown}`);
    this.name = 'AgentFailure';
    this.code = code;
  }
}

/** The error code for the HTTP status of a failed response of the gateway. */
export function codeOfStatus(status: number): FrameErrorCode {
  if (status === 401 || status === 403) return 'llm_unauthorized';
  if (status === 429) return 'llm_rate_limited';
  if (status === 503 || status === 529) return 'llm_overloaded';
  return status >= 500 || status === 408 ? 'llm_unavailable' : 'llm_refused';
}
