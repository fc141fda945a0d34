import { readFile } from 'node:fs/promises';
import { CliError } from '../output/cli-error.ts';

/** The certificate authority in `file`, PEM. @throws CliError `ca_unreadable` */
export async function readCa(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new CliError('ca_unreadable', `the certificate authority ${file} cannot be read`, {
      next: 'start the service once so that it makes one, or set SVC_CA_FILE',
      cause,
    });
  }
}
