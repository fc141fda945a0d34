import { Command } from 'commander';
import { parseWorkspace, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withAccount } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';

interface Options {
  readonly all?: boolean;
  readonly json?: boolean;
}

/** `svc workspace rm`: deletes a file, or with `--all` every file of a workspace. */
export function removeCommand(): Command {
  return new Command('rm')
    .description('delete a file, or every file of a workspace')
    .argument('<file>', 'app/capset:path, or app/capset with --all', parseWorkspace)
    .option('--all', 'delete every file of the workspace')
    .option('--json', 'print the response as JSON')
    .action(({ id, path }: WorkspaceLocation, { all, json }: Options) =>
      withAccount(async (client, signal) => {
        if ((path === '') !== (all === true)) {
          throw new CliError(
            'not_one_target',
            'name one file, or a workspace together with --all',
            {
              next: 'as in `svc workspace rm my-app/default:may.csv` or `svc workspace rm my-app/default --all`',
            },
          );
        }
        const deleted = all
          ? await client.workspaces.deleteAll(id, { signal })
          : await client.workspaces.delete(id, path, { signal });
        const name = `${id.appId}/${id.capsetId}${all ? '' : `:${path}`}`;
        console.log(json ? JSON.stringify(deleted) : `${name} deleted`);
      }),
    );
}
