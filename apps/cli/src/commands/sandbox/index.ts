import { Command } from 'commander';
import { attachCommand } from './attach.ts';
import { copyCommand } from './copy.ts';
import { createCommand } from './create.ts';
import { execCommand } from './exec.ts';
import { pauseCommand, removeCommand, resumeCommand } from './lifecycle.ts';
import { openCommand } from './open.ts';
import { getCommand, listCommand } from './records.ts';

/** `svc sandbox …` */
export function sandboxCommand(): Command {
  return new Command('sandbox')
    .description('create, use and destroy sandboxes')
    .enablePositionalOptions()
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(getCommand())
    .addCommand(execCommand())
    .addCommand(copyCommand())
    .addCommand(attachCommand())
    .addCommand(openCommand())
    .addCommand(pauseCommand())
    .addCommand(resumeCommand())
    .addCommand(removeCommand());
}
