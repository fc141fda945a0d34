import { Command } from 'commander';
import { withClient } from '../with-client.ts';

/** `svc keys revoke`: final, and at once. */
export function revokeKeyCommand(): Command {
  return new Command('revoke')
    .alias('rm')
    .description('revoke API keys; this cannot be undone')
    .argument('<ids...>', 'key ids, as `svc keys list` shows them')
    .action((ids: string[]) =>
      withClient(async (client, signal) => {
        for (const id of ids) {
          await client.keys.revoke(id, { signal });
          console.log(`${id} revoked`);
        }
      }),
    );
}
