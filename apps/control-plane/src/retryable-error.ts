import { type ErrorCode, ServiceError, type ServiceErrorOptions } from '@svc/contract';

/**
 * The seconds until another try may succeed, for errors that pass by themselves although the catalogue names no time. They are
 * not in the catalogue because it is part of the VM images, which each change to it has every machine build again.
 */
const RETRY_AFTER_SECONDS: Partial<Record<ErrorCode, number>> = {
  sandbox_limit_reached: 5,
  no_workers: 5,
  workspace_unavailable: 5,
};

/** A service error that names a time for another try if it passes by itself. */
export function retryableError(
  code: ErrorCode,
  detail?: string,
  options?: Pick<ServiceErrorOptions, 'cause'>,
): ServiceError {
  const retryAfterSeconds = RETRY_AFTER_SECONDS[code];
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  return new ServiceError(code, detail, { ...options, ...wait });
}
