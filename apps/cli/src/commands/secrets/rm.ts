import { Command } from 'commander';
import { withClient } from '../with-client.ts';

/** `svc secrets rm` */
export function removeSecretsCommand(): Command {
  return new Command('rm')
    .description('delete bundles; what runs keeps the values it has')
    .argument('<bundles...>', 'names of bundles')
    .action((names: string[]) =>
      withClient(async (client, signal) => {
        for (const name of names) {
          await client.secrets.delete(name, { signal });
          console.log(`${name} deleted`);
        }
      }),
    );
}
