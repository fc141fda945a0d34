import { readFile } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { exists } from '../../files.ts';
import { type Check, fail, ok } from '../finding.ts';

const LIST = new URL('../../../../../scripts/host-packages.txt', import.meta.url);

/** The programs of Debian packages that the service calls. */
export const programsCheck: Check = {
  name: 'programs',
  run: async () => {
    const lines = (await readFile(LIST, 'utf8')).split('\n').filter((line) => /^[a-z]/.test(line));
    const missing: string[] = [];
    for (const line of lines) {
      const [name = '', shows = ''] = line.split(/\s+/);
      if (!(await isPresent(shows))) missing.push(name);
    }
    if (missing.length === 0) return ok('programs', `all of ${lines.length} packages`);
    return fail(
      'programs',
      `missing: ${missing.join(', ')}`,
      'sh scripts/bootstrap.sh installs them',
    );
  },
};

async function isPresent(programOrFile: string): Promise<boolean> {
  const candidates = isAbsolute(programOrFile)
    ? [programOrFile]
    : (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, programOrFile));
  for (const candidate of candidates) {
    if (await exists(candidate)) return true;
  }
  return false;
}
