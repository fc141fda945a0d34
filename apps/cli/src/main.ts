/** Entry point of the command line: runs one command and prints its error, if any, for the user. */

import { describeError, exitCodeOf } from './output/errors.ts';
import { endWithoutReader } from './process-lifetime.ts';
import { program } from './program.ts';

// As in `svc sandbox exec … | head`. Whatever has to end in order ignores it: see ignoreOutputErrors.
endWithoutReader();

// Debian keeps `nft`, `ip` and `mke2fs` here; the PATH of a root shell does not always contain these directories.
process.env.PATH = `${process.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;

try {
  await program().parseAsync(process.argv);
} catch (error) {
  for (const line of describeError(error)) console.error(line);
  process.exitCode = exitCodeOf(error);
}
