import { stat } from 'node:fs/promises';

/** Whether there is anything at a path. */
export function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
