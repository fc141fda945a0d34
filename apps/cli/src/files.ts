import { access, constants } from 'node:fs/promises';

/** Whether something is at `path`. */
export async function exists(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
