import type { ErrorCode, FieldError, Problem } from '@svc/contract';

/** Codes of failures that happen before or without a response of the service. */
type ClientErrorCode =
  | 'already_watching'
  | 'connection_failed'
  | 'timeout'
  | 'invalid_response'
  | 'stream_ended'
  | 'unexpected_status'
  | 'connection_closed'
  | 'connection_lost'
  | 'frame_too_large'
  | 'frames_lost'
  | 'send_queue_full'
  | 'session_ended'
  | 'watch_refused';

/** The codes of the service's catalogue and of this client. A newer service may send additional codes. */
export type SvcErrorCode = ErrorCode | ClientErrorCode | (string & {});

interface SvcErrorFields {
  readonly code: SvcErrorCode;
  readonly title?: string | undefined;
  readonly detail: string;
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly cause?: unknown;
}

/** A call that failed. Match on `code`; show `detail`; report `requestId`. */
export class SvcError extends Error {
  override readonly name = 'SvcError';
  readonly code: SvcErrorCode;
  /** HTTP status, or 0 when there was no response. */
  readonly status: number;
  /** The kind of problem; the same for every error with this code. */
  readonly title: string;
  /** A sentence that says what to do. */
  readonly detail: string;
  /** Identifies this call in the service's log; undefined when the service did not respond. */
  readonly requestId: string | undefined;
  /** The invalid fields, for validation problems. */
  readonly errors: readonly FieldError[];
  /** The time to wait before the next attempt, if the service requests one. */
  readonly retryAfterSeconds: number | undefined;

  constructor(fields: SvcErrorFields) {
    super(
      `${fields.detail} (${fields.code})`,
      fields.cause === undefined ? undefined : { cause: fields.cause },
    );
    this.code = fields.code;
    this.status = fields.status ?? 0;
    this.title = fields.title ?? fields.code.replaceAll('_', ' ');
    this.detail = fields.detail;
    this.requestId = fields.requestId;
    this.errors = fields.errors ?? [];
    this.retryAfterSeconds = fields.retryAfterSeconds;
  }
}

/** Problem bodies are small: a larger body is not from the service. */
const MAX_PROBLEM_CHARS = 256 * 1024;

/** Converts a response with a failure status to an error. Reads the body. */
export async function errorOfResponse(response: Response): Promise<SvcError> {
  const requestId = response.headers.get('x-request-id') ?? undefined;
  const text = (await response.text().catch(() => '')).slice(0, MAX_PROBLEM_CHARS);
  const problem = parseProblem(text);
  return new SvcError({
    code: problem?.code ?? 'unexpected_status',
    title: problem?.title,
    detail:
      problem?.detail ??
      `The address answered ${response.status} and no problem description; check that it is the service.`,
    status: response.status,
    requestId: problem?.request_id ?? requestId,
    errors: problem?.errors,
    retryAfterSeconds: retryAfter(response.headers.get('retry-after')),
  });
}

function parseProblem(text: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isProblem(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isProblem(value: unknown): value is Problem {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    typeof value.code === 'string' &&
    'detail' in value &&
    typeof value.detail === 'string'
  );
}

/** The seconds of a Retry-After header. The service does not use the date form. */
function retryAfter(header: string | null): number | undefined {
  if (header === null || !/^\d{1,6}$/.test(header.trim())) return undefined;
  return Number(header);
}
