import type { ApiKeyRecord } from '@svc/sdk';
import { Command } from 'commander';
import { withClient } from '../connection/client.ts';
import { formatAge, formatTable } from '../output/format.ts';

/** `svc keys …` */
export function keysCommand(): Command {
  return new Command('keys')
    .description('create, list and revoke the API keys of this account')
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand());
}

/** Prints only the new key on standard output, so that a script can capture it. */
function createCommand(): Command {
  return new Command('create')
    .description('create an API key and print it; it is shown only once')
    .argument('[name]', 'purpose of the key, shown in listings')
    .option('--json', 'print the whole response as JSON')
    .action((name: string | undefined, { json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const created = await client.keys.create(name === undefined ? {} : { name }, { signal });
        console.log(json ? JSON.stringify(created) : created.api_key);
        if (!json) console.error(`svc: created ${created.key_id}; the key is not shown again`);
      }),
    );
}

const HEADING = ['ID', 'PREFIX', 'NAME', 'STATE', 'AGE', 'LAST USED'];

function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the API keys of this account, including the last revoked ones')
    .option('--json', 'print the response as JSON')
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
    formatAge(key.created_at),
    key.last_used_at === undefined ? 'never' : `${formatAge(key.last_used_at)} ago`,
  ];
}

function revokeCommand(): Command {
  return new Command('revoke')
    .alias('rm')
    .description('revoke API keys at once; this cannot be undone')
    .argument('<ids...>', 'key ids, as shown by `svc keys list`')
    .action((ids: string[]) =>
      withClient(async (client, signal) => {
        for (const id of ids) {
          await client.keys.revoke(id, { signal });
          console.log(`${id} revoked`);
        }
      }),
    );
}
