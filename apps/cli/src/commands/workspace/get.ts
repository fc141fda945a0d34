import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import { parseWorkspaceFile, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withAccount } from '../../connection/client.ts';
import { TransferBar } from '../../output/transfer-bar.ts';
import { downloadFile } from '../../workspaces/transfers.ts';

interface Options {
  readonly json?: boolean;
}

/** `svc workspace get`: downloads a file. An interrupted download leaves nothing behind. */
export function getCommand(): Command {
  return new Command('get')
    .description('download a file: svc workspace get my-app/default:reports/may.csv')
    .argument('<file>', 'app/capset:path', parseWorkspaceFile)
    .argument('[target]', 'local file or directory, or - for standard output', '.')
    .option('--json', 'print the path and size as JSON')
    .action(({ id, path }: WorkspaceLocation, target: string, { json }: Options) =>
      withAccount(async (client, signal) => {
        if (target === '-') {
          const { stream, size } = await client.workspaces.readStream(id, path, { signal });
          const bar = new TransferBar(basename(path), size);
          await pipeline(stream, bar.count(), process.stdout, { signal, end: false });
          return;
        }
        const file = (await isDirectory(target)) ? join(target, basename(path)) : target;
        const size = await downloadFile(
          client,
          { id, path },
          file,
          { bar: basename(path) },
          signal,
        );
        console.log(json ? JSON.stringify({ path: file, size }) : file);
      }),
    );
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (status) => status.isDirectory(),
    () => false,
  );
}
