import { ERRORS, type ErrorCode } from './catalogue.ts';
import type { FieldError } from './problem.ts';

export interface ServiceErrorOptions {
  /** The invalid fields, for validation problems. */
  readonly errors?: readonly FieldError[];
  /** Extra response headers, such as Retry-After. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The underlying error, which is logged but never sent. */
  readonly cause?: unknown;
}

/** A failure with a code from the catalogue. It determines the response that the caller receives. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly errors: readonly FieldError[] | undefined;
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
    this.headers = options.headers ?? {};
  }
}

/** Whether `error` is a {@link ServiceError}, with this code if one is given. */
export function isServiceError(error: unknown, code?: ErrorCode): error is ServiceError {
  return error instanceof ServiceError && (code === undefined || error.code === code);
}
