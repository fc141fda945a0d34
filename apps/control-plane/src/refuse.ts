import { type ErrorCode, ServiceError } from '@svc/contract';

/** Refuses a request for one of its fields, named by a JSON pointer. @throws ServiceError always */
export function refuse(code: ErrorCode, path: string, message = 'is not acceptable'): never {
  throw new ServiceError(code, undefined, { errors: [{ path, message }] });
}
