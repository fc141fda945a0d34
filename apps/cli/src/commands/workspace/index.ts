import { Command } from 'commander';
import { getCommand } from './get.ts';
import { listCommand } from './list.ts';
import { putCommand } from './put.ts';
import { removeCommand } from './remove.ts';
import { syncCommand } from './sync.ts';

/** `svc workspace …` */
export function workspaceCommand(): Command {
  return new Command('workspace')
    .description('list, download, upload, synchronise and delete persistent files')
    .addCommand(listCommand())
    .addCommand(getCommand())
    .addCommand(putCommand())
    .addCommand(removeCommand())
    .addCommand(syncCommand());
}
