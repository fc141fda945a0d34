import { isAbsolute, join, normalize } from 'node:path';
import { z } from 'zod';

/** Schema of a path in the input of a tool. */
export const PathInput = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => !path.includes('\0'), 'a path must not contain NUL')
  .describe('Absolute, or relative to the working directory.');

/** The absolute path for a tool's input. Begins with a slash, so that no program mistakes it for an option. */
export function resolvePath(path: string, workingDirectory: string): string {
  return normalize(isAbsolute(path) ? path : join(workingDirectory, path));
}
