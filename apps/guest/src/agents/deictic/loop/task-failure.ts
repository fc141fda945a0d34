import { FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';

/** Ends a task as failed; the message is for the client. */
export class TaskFailure extends Error {
  override readonly name = 'TaskFailure';
  readonly code: FrameErrorCode;
  /** The one of several agents that failed. */
  readonly agent: string | undefined;

  constructor(code: FrameErrorCode, message: string = FRAME_ERRORS[code], agent?: string) {
    super(message);
    this.code = code;
    this.agent = agent;
  }
}
