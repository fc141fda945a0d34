import { Command } from 'commander';
import { parseWorkspace, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withAccount } from '../../connection/client.ts';
import { formatBytes } from '../../output/format.ts';
import { type SyncOptions, type SyncResult, syncWorkspace } from '../../workspaces/sync.ts';

interface Options extends SyncOptions {
  readonly json?: boolean;
}

/** `svc workspace sync`: copies what differs between a directory and a workspace. */
export function syncCommand(): Command {
  return new Command('sync')
    .description('copy what differs: svc workspace sync reports my-app/default:reports')
    .argument('<directory>', 'local directory')
    .argument('<workspace>', 'app/capset, or app/capset:directory', parseWorkspace)
    .option('--pull', 'copy from the workspace to the directory')
    .option('--delete', 'delete files that only the target has')
    .option('--dry-run', 'show what would be copied and deleted, and change nothing')
    .option('--json', 'print what was done as JSON')
    .addHelpText(
      'after',
      '\nA file is copied if the target lacks it, has another size, or is older. Symbolic links are skipped.',
    )
    .action((directory: string, location: WorkspaceLocation, { json, ...options }: Options) =>
      withAccount(async (client, signal) => {
        const result = await syncWorkspace(client, directory, location, options, signal);
        console.log(json ? JSON.stringify(result) : describe(result, options));
      }),
    );
}

function describe(
  { copied, deleted, unchanged, skipped, bytes }: SyncResult,
  { pull, dryRun }: SyncOptions,
): string {
  const verb = pull ? 'downloaded' : 'uploaded';
  const sum = `${copied.length} ${verb} (${formatBytes(bytes)}), ${deleted.length} deleted, ${unchanged} unchanged`;
  return [
    ...deleted.map((path) => `deleted ${path}`),
    ...copied.map((path) => `${verb} ${path}`),
    ...skipped.map((path) => `skipped ${path}, which is not a regular file`),
    dryRun ? `${sum}; nothing was changed, because of --dry-run` : sum,
  ].join('\n');
}
