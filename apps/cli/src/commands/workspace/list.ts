import { Command } from 'commander';
import { parseWorkspace, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withAccount } from '../../connection/client.ts';
import { formatAge, formatBytes, formatTable } from '../../output/format.ts';

/** `svc workspace ls`: the workspaces, or the files of one. */
export function listCommand(): Command {
  return new Command('ls')
    .alias('list')
    .description('list workspaces, or the files of one: svc workspace ls my-app/default:reports/')
    .argument('[workspace]', 'app/capset, or app/capset:prefix', parseWorkspace)
    .option('--json', 'print the response as JSON')
    .action((location: WorkspaceLocation | undefined, { json }: { json?: boolean }) =>
      withAccount(async (client, signal) => {
        if (location === undefined) {
          const workspaces = await client.workspaces.list({ signal });
          const rows = workspaces.map((one) => [
            `${one.app_id}/${one.capset_id}`,
            formatBytes(one.size_bytes),
          ]);
          console.log(
            json ? JSON.stringify(workspaces) : formatTable([['WORKSPACE', 'SIZE'], ...rows]),
          );
          return;
        }
        const files = [];
        for await (const file of client.workspaces.files(location.id, location.path, { signal })) {
          files.push(file);
        }
        const rows = files.map(({ path, size, modified }) => [
          path,
          formatBytes(size),
          formatAge(modified),
        ]);
        console.log(json ? JSON.stringify(files) : formatTable([['PATH', 'SIZE', 'AGE'], ...rows]));
      }),
    );
}
