/** Everything that makes a terminal do something but go to the next line or column. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

/**
 * Text that comes from a sandbox, made safe to show: without the characters that could move the cursor, change the
 * title or answer in the place of the person. Pieces of a stream may be cut anywhere.
 */
export function plainText(text: string): string {
  return text.replace(CONTROLS, '');
}
