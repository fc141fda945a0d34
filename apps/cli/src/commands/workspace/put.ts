import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { Command } from 'commander';
import { parseWorkspace, type WorkspaceLocation } from '../../arguments/workspace.ts';
import { withAccount } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';
import { TransferBar } from '../../output/transfer-bar.ts';
import { uploadFile } from '../../workspaces/transfers.ts';

interface Options {
  readonly json?: boolean;
}

/** `svc workspace put`: uploads a file, completely or not at all. */
export function putCommand(): Command {
  return new Command('put')
    .description('upload a file: svc workspace put may.csv my-app/default:reports/')
    .argument('<source>', 'local file')
    .argument(
      '<target>',
      'app/capset, or app/capset:path; a path that ends in / is a directory',
      parseWorkspace,
    )
    .option('--json', 'print the path and size as JSON')
    .action((source: string, { id, path }: WorkspaceLocation, { json }: Options) =>
      withAccount(async (client, signal) => {
        const target = path === '' || path.endsWith('/') ? path + basename(source) : path;
        const file = await open(source).catch((cause: unknown) => {
          throw new CliError('file_unreadable', `cannot read ${source}`, {
            next: 'check that the file exists and that you may read it',
            cause,
          });
        });
        try {
          const status = await file.stat();
          if (!status.isFile()) {
            throw new CliError('not_a_file', `${source} is not a file`, {
              next: 'use `svc workspace sync` for a directory',
            });
          }
          const bar = new TransferBar(basename(source), status.size);
          const { size } = status;
          await uploadFile(client, { id, path: target }, { file, size }, bar, signal);
          console.log(json ? JSON.stringify({ path: target, size }) : target);
        } finally {
          await file.close();
        }
      }),
    );
}
