import { cp, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram } from '@svc/service-kit/process';
import { compileLibraries } from '../src/image/build/compile-libraries.ts';

const FOLDER = fileURLToPath(new URL('../../../images/standard', import.meta.url));
const PROGRAMS = 'usr/lib/svc';

/**
 * Copies the programs that run in a guest to `directory`, and compiles their libraries with this machine's compiler, as the
 * build of the image does. Returns the path of the guest's daemon.
 */
export async function guestPrograms(directory: string): Promise<string> {
  await mkdir(join(directory, PROGRAMS), { recursive: true });
  await cp(join(FOLDER, 'rootfs', PROGRAMS), join(directory, PROGRAMS), { recursive: true });
  const { libraries } = JSON.parse(await readFile(join(FOLDER, 'image.json'), 'utf8'));
  await runProgram('sh', ['-euc', compileLibraries({ folder: FOLDER, libraries }, directory, [])]);
  return join(directory, PROGRAMS, 'guestd');
}
