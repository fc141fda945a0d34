import { ServiceError } from '@svc/contract';

/**
 * The `after_seq` of an upgrade: replay what came after this frame. Undefined: only what comes from now on.
 * @throws ServiceError `validation_failed`
 */
export function afterSeqOf(query: URLSearchParams): number | undefined {
  const sent = query.getAll('after_seq');
  if (sent.length === 0) return undefined;
  const [text = ''] = sent;
  const value = Number(text);
  if (sent.length === 1 && /^\d{1,16}$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new ServiceError('validation_failed', undefined, {
    errors: [{ path: 'after_seq', message: 'must be one whole number of at least 0' }],
  });
}
