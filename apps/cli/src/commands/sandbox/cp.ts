import { Command } from 'commander';
import { type Location, parseLocation } from '../../arguments/location.ts';
import { CliError } from '../../output/cli-error.ts';
import { withClient } from '../with-client.ts';
import { download } from './copy/download.ts';
import { upload } from './copy/upload.ts';

/** `svc sandbox cp`: one file into or out of a sandbox; `-` is standard input or output. */
export function cpCommand(): Command {
  return new Command('cp')
    .description('copy a file into or out of a sandbox: svc sandbox cp report.csv vm_…:/tmp/')
    .argument('<from>', 'file here, vm_…:/path, or -', parseLocation)
    .argument('<to>', 'file here, vm_…:/path, or -', parseLocation)
    .action((from: Location, to: Location) =>
      withClient(async (client, signal) => {
        if (from.kind !== 'sandbox' && to.kind === 'sandbox') {
          await upload(client, from, to, signal);
        } else if (from.kind === 'sandbox' && to.kind !== 'sandbox') {
          await download(client, from, to, signal);
        } else {
          throw new CliError('not_one_sandbox', 'exactly one side must be in a sandbox', {
            next: 'as in `svc sandbox cp report.csv vm_…:/tmp/` or `svc sandbox cp vm_…:/etc/os-release -`',
          });
        }
      }),
    );
}
