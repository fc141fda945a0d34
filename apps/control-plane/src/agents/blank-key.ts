/** Whether this is no key of a model's vendor: the gateway removes white space around one. */
export function isBlankKey(key: string): boolean {
  return key.trim() === '';
}
