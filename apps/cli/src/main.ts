/** Entry point of the command line: runs one command and prints its error, if any, for the user. */

import { describeError, exitCodeOf } from './output/errors.ts';
import { program } from './program.ts';

// Debian keeps `nft`, `ip` and `mke2fs` here; the PATH of a root shell does not always contain these directories.
process.env.PATH = `${process.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;

try {
  await program().parseAsync(process.argv);
} catch (error) {
  for (const line of describeError(error)) console.error(line);
  process.exitCode = exitCodeOf(error);
}
