import type { Command } from 'commander';
import { withClient } from '../with-client.ts';
import { commandWithValues } from './values-command.ts';

/** `svc secrets set`: makes a bundle. */
export function setSecretsCommand(): Command {
  return commandWithValues('set', 'make a bundle of the values read', (name, values) =>
    withClient(async (client, signal) => {
      const made = await client.secrets.create(name, values, { signal });
      console.log(`${made.name} set: ${made.key_names.join(', ')}`);
    }),
  );
}
