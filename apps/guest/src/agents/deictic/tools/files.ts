import { dirname } from 'node:path';
import { capture } from '../../tools/capture.ts';
import type { ToolContext } from '../../tools/tool.ts';

/** Largest file that tools read completely, in characters. */
export const MAX_FILE_CHARS = 2 * 1024 * 1024;

/**
 * The text of a file.
 * @throws an Error with the reason when it cannot be read, is too large or is not text
 */
export async function readText(
  context: ToolContext,
  path: string,
  signal: AbortSignal,
): Promise<string> {
  const read = await capture(context, ['cat', path], { signal, maxChars: MAX_FILE_CHARS });
  if (read.overflowed) {
    throw new Error(
      `${path} is larger than ${MAX_FILE_CHARS / 1024 / 1024} MiB; use the shell to look at it`,
    );
  }
  if (read.exitCode !== 0) throw new Error(read.stderr || `${path} cannot be read`);
  // Invalid UTF-8 was decoded to U+FFFD; writing that back would corrupt the file.
  if (/[\0\ufffd]/.test(read.stdout)) throw new Error(`${path} is not UTF-8 text`);
  return read.stdout;
}

/**
 * Writes a file, and creates missing directories.
 * @throws an Error with the reason when that fails
 */
export async function writeText(
  context: ToolContext,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const script = 'mkdir -p -- "$1" && cat > "$2"';
  const written = await capture(context, ['sh', '-c', script, 'sh', dirname(path), path], {
    signal,
    maxChars: 1_000,
    input: text,
  });
  if (written.exitCode !== 0) throw new Error(written.stderr || `${path} cannot be written`);
}
