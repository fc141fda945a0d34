import { Command } from 'commander';
import { buildCommand } from './build.ts';
import { keyCommand } from './key.ts';
import { listCommand } from './list.ts';
import { pruneCommand } from './prune.ts';
import { pushCommand } from './push.ts';
import { removeCommand } from './remove.ts';

/** `svc image …` */
export function imageCommand(): Command {
  return new Command('image')
    .description('build, push, list and remove the images that sandboxes start from')
    .addCommand(buildCommand())
    .addCommand(pushCommand())
    .addCommand(keyCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addCommand(pruneCommand());
}
