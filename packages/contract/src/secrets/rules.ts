import type { ErrorCode } from '../errors/catalogue.ts';
import { LIMITS } from '../limits.ts';
import { reservedKeysIn } from '../reserved-keys.ts';

/** Names that a shell accepts for an environment variable. */
const KEY_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** A character that no value of an HTTP header can contain, by the rule of Node’s `validateHeaderValue`. */
export const NOT_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/;

/** The bundle key for a customer's own model endpoint. */
export const LLM_BASE_URL_KEY = 'LLM_BASE_URL';
/** The bundle key that every bundle used for a model must have. */
export const LLM_API_KEY_KEY = 'LLM_API_KEY';
/** The bundle key for the model of sessions whose request names none. */
export const LLM_MODEL_KEY = 'LLM_MODEL';

/** A problem with the values of a bundle. */
export interface BundleProblem {
  readonly code: ErrorCode;
  /** JSON pointer into the request. */
  readonly path: string;
  readonly message: string;
}

/**
 * The first rule that the values of a bundle break, or undefined. It reveals nothing about a value except its size.
 * The addresses that `LLM_BASE_URL` may name are checked elsewhere.
 */
export function bundleProblem(values: Readonly<Record<string, string>>): BundleProblem | undefined {
  const names = Object.keys(values);
  if (names.length > LIMITS.secretKeysPerBundle) {
    const message = `has ${names.length} keys; ${LIMITS.secretKeysPerBundle} are allowed`;
    return { code: 'too_many_secret_keys', path: '/values', message };
  }
  const misnamed = names.find((name) => !KEY_NAME.test(name));
  if (misnamed !== undefined) {
    const message = 'every key must match [A-Za-z_][A-Za-z0-9_]* and have at most 128 characters';
    return { code: 'secret_key_invalid', path: '/values', message };
  }
  const [reserved] = reservedKeysIn(values);
  if (reserved !== undefined) {
    return { code: 'reserved_secret_key', path: `/values/${reserved}`, message: 'is reserved' };
  }
  for (const [name, value] of Object.entries(values)) {
    const problem = valueProblem(name, value);
    if (problem !== undefined) return { ...problem, path: `/values/${name}` };
  }
  return undefined;
}

/**
 * Why a key for a model endpoint cannot be sent in an HTTP header, or undefined. White space around it is allowed: the
 * gateway removes it.
 */
export function llmKeyProblem(key: string): string | undefined {
  const sent = key.trim();
  if (sent.length > LIMITS.llmKeyChars) {
    return `must have at most ${LIMITS.llmKeyChars} characters`;
  }
  return NOT_IN_HEADER.test(sent)
    ? 'must be one line without control characters or characters beyond Latin-1, such as typographic quotes; copy the key from the vendor again'
    : undefined;
}

function valueProblem(name: string, value: string): Omit<BundleProblem, 'path'> | undefined {
  if (utf8Bytes(value) > LIMITS.secretValueBytes) {
    const message = `is larger than ${LIMITS.secretValueBytes} bytes of UTF-8`;
    return { code: 'secret_value_too_large', message };
  }
  // No environment variable can contain it.
  if (value.includes('\0')) return { code: 'validation_failed', message: 'must not contain NUL' };
  if (!value.isWellFormed()) return { code: 'validation_failed', message: 'must be valid Unicode' };
  const keyProblem = name === LLM_API_KEY_KEY ? llmKeyProblem(value) : undefined;
  return keyProblem === undefined ? undefined : { code: 'validation_failed', message: keyProblem };
}

function utf8Bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
