import { type ErrorCode, ServiceError } from '@svc/contract';

/** Rejects a request because of one field, named by a JSON pointer. @throws ServiceError always */
export function rejectField(code: ErrorCode, path: string, message = 'is not acceptable'): never {
  throw new ServiceError(code, undefined, { errors: [{ path, message }] });
}
