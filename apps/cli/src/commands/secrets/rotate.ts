import type { Command } from 'commander';
import { withClient } from '../with-client.ts';
import { commandWithValues } from './values-command.ts';

/** `svc secrets rotate`: replaces all values of a bundle. */
export function rotateSecretsCommand(): Command {
  return commandWithValues('rotate', 'replace all values of a bundle', (name, values) =>
    withClient(async (client, signal) => {
      const rotated = await client.secrets.rotate(name, values, { signal });
      console.log(`${rotated.name} rotated: ${rotated.key_names.join(', ')}`);
    }),
  );
}
