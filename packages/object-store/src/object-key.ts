import { ObjectStoreError } from './object-store-error.ts';

/** Largest key, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 512;
/** Largest component: any byte may take three characters in the name of a file, which has at most 255. */
export const MAX_COMPONENT_BYTES = 80;

/** Control characters and noncharacters, which the XML of S3 cannot carry. */
const UNPRINTABLE = /[\p{Cc}\uFFFE\uFFFF]/u;

/**
 * The components of a key: one or more, joined by `/`, each of 1 to {@link MAX_COMPONENT_BYTES} bytes, none `.` or
 * `..`, in all at most {@link MAX_KEY_BYTES} bytes of well-formed text without control characters.
 * @throws ObjectStoreError `object_key_invalid`
 */
export function checkKey(key: string): string[] {
  const components = key.split('/');
  if (!isText(key) || !components.every(isComponent)) {
    throw new ObjectStoreError('object_key_invalid', 'the key of an object is invalid');
  }
  return components;
}

/**
 * The components of a prefix, which is empty or a key and a `/`.
 * @throws ObjectStoreError `object_key_invalid`
 */
export function checkPrefix(prefix: string): string[] {
  if (prefix === '') return [];
  if (!prefix.endsWith('/')) {
    throw new ObjectStoreError('object_key_invalid', 'a prefix of keys must end in /');
  }
  return checkKey(prefix.slice(0, -1));
}

/** Orders keys by their UTF-8 bytes, as S3 does. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function isText(key: string): boolean {
  return key.isWellFormed() && Buffer.byteLength(key) <= MAX_KEY_BYTES && !UNPRINTABLE.test(key);
}

function isComponent(component: string): boolean {
  if (component === '.' || component === '..') return false;
  const bytes = Buffer.byteLength(component);
  return bytes >= 1 && bytes <= MAX_COMPONENT_BYTES;
}
