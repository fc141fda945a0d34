import { readFile } from 'node:fs/promises';
import { CliError } from '../output/errors.ts';

/** Reads the PEM certificates of a certificate authority. @throws CliError `ca_unreadable` */
export async function readCa(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new CliError('ca_unreadable', `cannot read the CA certificate ${file}`, {
      next: 'start the service once to create its CA, or set SVC_CA_FILE',
      cause,
    });
  }
}
