import { ServiceError } from '../errors/service-error.ts';

const DIGITS = /^\d{1,16}$/;

/**
 * The `after_seq` of a request for a session's WebSocket: replay the frames after this number. Undefined means
 * live frames only.
 * @throws ServiceError `validation_failed` unless it is absent or a single non-negative integer
 */
export function parseAfterSeq(query: URLSearchParams): number | undefined {
  const values = query.getAll('after_seq');
  if (values.length === 0) return undefined;
  const [text = ''] = values;
  const seq = Number(text);
  if (values.length === 1 && DIGITS.test(text) && Number.isSafeInteger(seq)) return seq;
  throw new ServiceError('validation_failed', undefined, {
    errors: [{ path: 'after_seq', message: 'must be one whole number of at least 0' }],
  });
}
