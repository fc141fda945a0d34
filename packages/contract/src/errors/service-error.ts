import { ERRORS, type ErrorCode } from './catalogue.ts';
import type { FieldError } from './problem.ts';

export interface ServiceErrorOptions {
  /** The invalid fields, for validation problems. */
  readonly errors?: readonly FieldError[];
  /** Extra response headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The seconds until another try may succeed. Default: those in the catalogue, if any. */
  readonly retryAfterSeconds?: number;
  /** The underlying error, which is logged but never sent. */
  readonly cause?: unknown;
}

/** A failure with a code from the catalogue. It determines the response that the caller receives. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly errors: readonly FieldError[] | undefined;
  /** The response headers that belong to the error, such as Retry-After. */
  readonly headers: Readonly<Record<string, string>>;

  /** `detail` is sent to the caller: one sentence that says what to do. Default: the sentence in the catalogue. */
  constructor(code: ErrorCode, detail?: string, options: ServiceErrorOptions = {}) {
    super(
      detail ?? ERRORS[code].detail,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.status = ERRORS[code].status;
    this.errors = options.errors;
    const { retryAfterSeconds = ERRORS[code].retryAfterSeconds } = options;
    this.headers = {
      ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
      ...options.headers,
    };
  }
}

/** Whether `error` is a {@link ServiceError}, with this code if one is given. */
export function isServiceError(error: unknown, code?: ErrorCode): error is ServiceError {
  return error instanceof ServiceError && (code === undefined || error.code === code);
}
