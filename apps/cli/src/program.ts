import { Command } from 'commander';
import { controlPlaneCommand } from './commands/control-plane.ts';
import { demoCommand } from './commands/demo.ts';
import { doctorCommand } from './commands/doctor.ts';
import { downCommand } from './commands/down.ts';
import { imageCommand } from './commands/image/index.ts';
import { keysCommand } from './commands/keys/index.ts';
import { loginCommand } from './commands/login.ts';
import { runtimeCommand } from './commands/runtime.ts';
import { sandboxCommand } from './commands/sandbox/index.ts';
import { secretsCommand } from './commands/secrets/index.ts';
import { sessionCommand } from './commands/session/index.ts';
import { statusCommand } from './commands/status.ts';
import { upCommand } from './commands/up.ts';
import { workerCommand } from './commands/worker.ts';
import { VERSION } from './version.ts';

/** The whole command line. Each command loads what it needs when it runs. */
export function program(): Command {
  return new Command('svc')
    .description(
      'computers for AI agents: micro-VM sandboxes and agent sessions behind a small API',
    )
    .version(VERSION)
    .enablePositionalOptions()
    .showHelpAfterError('run the command with --help for its options')
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
    .addCommand(imageCommand())
    .addCommand(controlPlaneCommand())
    .addCommand(runtimeCommand())
    .addCommand(workerCommand());
}
