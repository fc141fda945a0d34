import { Command } from 'commander';
import { withClient } from '../with-client.ts';

/** `svc keys create`: prints the new key, and nothing else, on standard output. */
export function createKeyCommand(): Command {
  return new Command('create')
    .description('make an API key and print it; it is shown this once')
    .argument('[name]', 'what it is for, as listings will show')
    .option('--json', 'print the whole answer as JSON')
    .action((name: string | undefined, { json }: { json?: boolean }) =>
      withClient(async (client, signal) => {
        const made = await client.keys.create(name === undefined ? {} : { name }, { signal });
        console.log(json ? JSON.stringify(made) : made.api_key);
        if (!json) console.error(`svc: made ${made.key_id}; the key is not shown again`);
      }),
    );
}
