import { Command } from 'commander';
import { backupCommand, restoreCommand } from './commands/backup.ts';
import { billingCommand } from './commands/billing/index.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { controlPlaneCommand, runtimeCommand } from './commands/fleet.ts';
import { imageCommand } from './commands/image/index.ts';
import { keysCommand } from './commands/keys.ts';
import { loginCommand } from './commands/login.ts';
import { sandboxCommand } from './commands/sandbox/index.ts';
import { secretsCommand } from './commands/secrets.ts';
import { downCommand, statusCommand, upCommand } from './commands/service.ts';
import { sessionCommand } from './commands/session/index.ts';
import { usageCommand } from './commands/usage.ts';
import { workerCommand } from './commands/worker/index.ts';
import { workspaceCommand } from './commands/workspace/index.ts';
import { VERSION } from './version.ts';

/** The whole command line. To start fast, each command imports its heavy modules only when it runs. */
export function program(): Command {
  return new Command('svc')
    .description(
      'computers for AI agents: micro-VM sandboxes and agent sessions behind a small API',
    )
    .version(VERSION)
    .enablePositionalOptions()
    .showHelpAfterError('run the command with --help to see its options')
    .addCommand(upCommand())
    .addCommand(downCommand())
    .addCommand(statusCommand())
    .addCommand(doctorCommand())
    .addCommand(sandboxCommand())
    .addCommand(sessionCommand())
    .addCommand(demoCommand())
    .addCommand(loginCommand())
    .addCommand(keysCommand())
    .addCommand(secretsCommand())
    .addCommand(usageCommand())
    .addCommand(billingCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(workspaceCommand())
    .addCommand(imageCommand())
    .addCommand(controlPlaneCommand())
    .addCommand(runtimeCommand())
    .addCommand(workerCommand());
}
