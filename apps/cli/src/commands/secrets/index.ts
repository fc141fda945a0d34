import { Command } from 'commander';
import { listSecretsCommand } from './list.ts';
import { removeSecretsCommand } from './rm.ts';
import { rotateSecretsCommand } from './rotate.ts';
import { rotateMasterKeyCommand } from './rotate-master-key.ts';
import { setSecretsCommand } from './set.ts';

/** `svc secrets …` */
export function secretsCommand(): Command {
  return new Command('secrets')
    .description('keep named bundles of secret values')
    .addCommand(setSecretsCommand())
    .addCommand(rotateSecretsCommand())
    .addCommand(listSecretsCommand())
    .addCommand(removeSecretsCommand())
    .addCommand(rotateMasterKeyCommand());
}
