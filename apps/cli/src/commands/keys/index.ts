import { Command } from 'commander';
import { createKeyCommand } from './create.ts';
import { listKeysCommand } from './list.ts';
import { revokeKeyCommand } from './revoke.ts';

/** `svc keys …` */
export function keysCommand(): Command {
  return new Command('keys')
    .description('make, list and revoke the API keys of this account')
    .addCommand(createKeyCommand())
    .addCommand(listKeysCommand())
    .addCommand(revokeKeyCommand());
}
