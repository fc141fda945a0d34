import type { ApiKeyRecord } from '@svc/sdk';
import { Command } from 'commander';
import { formatTable } from '../../output/table.ts';
import { formatDuration } from '../../output/units.ts';
import { withClient } from '../with-client.ts';

const HEADING = ['ID', 'PREFIX', 'NAME', 'STATE', 'AGE', 'LAST USED'];

/** `svc keys list`: the account's keys, revoked ones too. */
export function listKeysCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the API keys of this account')
    .option('--json', 'print the answer as JSON')
    .action(({ json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const keys = await client.keys.list({ signal });
        console.log(json ? JSON.stringify(keys) : formatTable([HEADING, ...keys.map(rowOf)]));
      }),
    );
}

function rowOf(key: ApiKeyRecord): string[] {
  return [
    key.key_id,
    key.prefix,
    key.name ?? '',
    key.revoked ? 'revoked' : 'active',
    ago(key.created_at),
    key.last_used_at === undefined ? 'never' : `${ago(key.last_used_at)} ago`,
  ];
}

function ago(time: string): string {
  return formatDuration(Math.max(0, Date.now() - Date.parse(time)));
}
