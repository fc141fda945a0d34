import { Command } from 'commander';
import { attachCommand } from './attach.ts';
import { listCommand, removeCommand } from './records.ts';
import { resumeCommand } from './resume.ts';
import { startCommand } from './start.ts';
import { watchCommand } from './watch.ts';

/** `svc session …` */
export function sessionCommand(): Command {
  return new Command('session')
    .description('talk to agents that work in sandboxes')
    .addCommand(startCommand())
    .addCommand(attachCommand())
    .addCommand(resumeCommand())
    .addCommand(watchCommand())
    .addCommand(listCommand())
    .addCommand(removeCommand());
}
