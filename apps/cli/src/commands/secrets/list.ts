import type { BundleRecord } from '@svc/sdk';
import { Command } from 'commander';
import { formatTable } from '../../output/table.ts';
import { formatDuration } from '../../output/units.ts';
import { withClient } from '../with-client.ts';

const HEADING = ['NAME', 'KEYS', 'AGE', 'ROTATED'];

/** `svc secrets list`: names only; values never come back. */
export function listSecretsCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list bundles and the names of their keys')
    .option('--json', 'print the answer as JSON')
    .action(({ json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const bundles = await client.secrets.list({ signal });
        console.log(json ? JSON.stringify(bundles) : formatTable([HEADING, ...bundles.map(rowOf)]));
      }),
    );
}

function rowOf(bundle: BundleRecord): string[] {
  const { last_rotated_at: rotated } = bundle;
  return [
    bundle.name,
    bundle.key_names.join(','),
    ago(bundle.created_at),
    rotated === undefined ? 'never' : `${ago(rotated)} ago`,
  ];
}

function ago(time: string): string {
  return formatDuration(Math.max(0, Date.now() - Date.parse(time)));
}
