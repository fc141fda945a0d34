import { Command } from 'commander';
import { attachCommand } from './attach.ts';
import { listSessionsCommand } from './list.ts';
import { resumeSessionCommand } from './resume.ts';
import { removeSessionsCommand } from './rm.ts';
import { startCommand } from './start.ts';

/** `svc session …` */
export function sessionCommand(): Command {
  return new Command('session')
    .description('talk to agents that work in sandboxes')
    .addCommand(startCommand())
    .addCommand(attachCommand())
    .addCommand(resumeSessionCommand())
    .addCommand(listSessionsCommand())
    .addCommand(removeSessionsCommand());
}
