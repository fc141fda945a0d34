import { FRAME_ERRORS, type FrameErrorCode } from '@svc/contract';

/** Ends a task as failed. The message is for the client. */
export class TaskFailure extends Error {
  override readonly name = 'TaskFailure';
  readonly code: FrameErrorCode;
  /** The agent that failed, if there are several. */
  readonly agent: string | undefined;

  constructor(code: FrameErrorCode, message: string = FRAME_ERRORS[code], agent?: string) {
    super(message);
    this.code = code;
    this.agent = agent;
  }
}
