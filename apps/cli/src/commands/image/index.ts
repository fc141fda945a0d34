import { Command } from 'commander';
import { buildCommand } from './build.ts';
import { listCommand } from './list.ts';

/** `svc image …` */
export function imageCommand(): Command {
  return new Command('image')
    .description('the images that sandboxes are made from')
    .addCommand(buildCommand())
    .addCommand(listCommand());
}
