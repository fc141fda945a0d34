import { ServiceError } from './service-error.ts';

/** Short, because another process of the fleet usually accepts the request at once. */
const RETRY_AFTER_SECONDS = '1';

/** The refusal of new work by a process that is about to end: `shutting_down`, with Retry-After. */
export function shuttingDownError(): ServiceError {
  return new ServiceError('shutting_down', undefined, {
    headers: { 'retry-after': RETRY_AFTER_SECONDS },
  });
}
