import type { BundleRecord } from '@svc/sdk';
import { Command } from 'commander';
import { withClient } from '../connection/client.ts';
import { formatAge, formatTable } from '../output/format.ts';
import { readValues } from './secret-values.ts';

/** `svc secrets …` */
export function secretsCommand(): Command {
  return new Command('secrets')
    .description('manage named bundles of secret values')
    .addCommand(setCommand())
    .addCommand(rotateCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addCommand(rotateMasterKeyCommand());
}

function setCommand(): Command {
  return commandWithValues('set', 'create a bundle from the values read', (name, values) =>
    withClient(async (client, signal) => {
      const created = await client.secrets.create(name, values, { signal });
      console.log(`${created.name} set: ${created.key_names.join(', ')}`);
    }),
  );
}

function rotateCommand(): Command {
  return commandWithValues('rotate', 'replace all values of a bundle', (name, values) =>
    withClient(async (client, signal) => {
      const rotated = await client.secrets.rotate(name, values, { signal });
      console.log(`${rotated.name} rotated: ${rotated.key_names.join(', ')}`);
    }),
  );
}

const VALUES_HELP = `
The values are read from standard input or a file, never from arguments, which other users of the
machine can see. The input is either NAME=value lines or a JSON object; with --key, the whole input is
one value.

  svc secrets set openai --file openai.env
  svc secrets set openai --key LLM_API_KEY < key.txt`;

/** A command that reads the values of a bundle and passes them to `act`. */
function commandWithValues(
  name: string,
  description: string,
  act: (bundle: string, values: Readonly<Record<string, string>>) => Promise<void>,
): Command {
  return new Command(name)
    .description(description)
    .argument('<bundle>', 'name of the bundle')
    .option('-f, --file <path>', 'file to read; - is standard input', '-')
    .option('-k, --key <name>', 'use the whole input as the value of this key')
    .addHelpText('after', VALUES_HELP)
    .action(async (bundle: string, { file, key }: { file: string; key?: string }) => {
      await act(bundle, await readValues(file, key));
    });
}

const HEADING = ['NAME', 'KEYS', 'AGE', 'ROTATED'];

/** The service returns only the names of keys, never their values. */
function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list bundles and the names of their keys')
    .option('--json', 'print the response as JSON')
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
    formatAge(bundle.created_at),
    rotated === undefined ? 'never' : `${formatAge(rotated)} ago`,
  ];
}

function removeCommand(): Command {
  return new Command('rm')
    .description('delete bundles; running sandboxes keep their values')
    .argument('<bundles...>', 'names of the bundles')
    .action((names: string[]) =>
      withClient(async (client, signal) => {
        for (const name of names) {
          await client.secrets.delete(name, { signal });
          console.log(`${name} deleted`);
        }
      }),
    );
}

/** For the operator, on a machine that runs a control plane. */
function rotateMasterKeyCommand(): Command {
  return new Command('rotate-master-key')
    .description('wrap every stored secret with a new master key; for the operator')
    .addHelpText(
      'after',
      `
The service may be running. If the command is interrupted, run it again to finish.

With SVC_MASTER_KEY_FILE, first write the new key before the old one in that file of every control
plane; take the old one away afterwards. With SVC_MASTER_KEY, first restart every control plane with
the new key in SVC_MASTER_KEY and the old one in SVC_MASTER_KEY_PREVIOUS; then run this command with the
same two variables. Otherwise the command generates a key and stores it in the data directory.`,
    )
    .action(async () => {
      const { rotateStoredMasterKey } = await import('../service/rotate-master-key.ts');
      await rotateStoredMasterKey();
    });
}
