import { Command } from 'commander';
import { cpCommand } from './cp.ts';
import { createCommand } from './create.ts';
import { execCommand } from './exec.ts';
import { getCommand } from './get.ts';
import { listCommand } from './list.ts';
import { pauseCommand } from './pause.ts';
import { resumeCommand } from './resume.ts';
import { rmCommand } from './rm.ts';

/** `svc sandbox …` */
export function sandboxCommand(): Command {
  return new Command('sandbox')
    .description('make, use and destroy sandboxes')
    .enablePositionalOptions()
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(getCommand())
    .addCommand(execCommand())
    .addCommand(cpCommand())
    .addCommand(pauseCommand())
    .addCommand(resumeCommand())
    .addCommand(rmCommand());
}
