/** The command line's entry: runs one command and turns its failure into lines for a person. */

import { describeError, exitCodeOf } from './output/report-error.ts';
import { program } from './program.ts';

// Where Debian keeps `nft`, `ip` and `mke2fs`; a root shell does not always have them on its path.
process.env.PATH = `${process.env.PATH ?? '/usr/bin:/bin'}:/usr/sbin:/sbin`;

try {
  await program().parseAsync(process.argv);
} catch (error) {
  for (const line of describeError(error)) console.error(line);
  process.exitCode = exitCodeOf(error);
}
