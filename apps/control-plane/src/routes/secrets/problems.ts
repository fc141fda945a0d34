import type { ErrorCode } from '@svc/contract';

/** Codes of invalid bundle values. */
export const VALUE_PROBLEMS = [
  'secret_key_invalid',
  'reserved_secret_key',
  'secret_value_too_large',
  'too_many_secret_keys',
  'llm_base_url_refused',
] as const satisfies ErrorCode[];
