#!/usr/bin/env node
// Starts the command line with the Node version that the checkout pins, whichever Node (14 or newer) runs this file.
// Plain JavaScript without newer syntax, because an older Node may run it.
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, '../src/main.ts');
const pinned = join(here, '../../../node_modules/node/bin/node');

if (!existsSync(pinned)) {
  console.error('svc: the packages of this checkout are not installed');
  console.error('next: sh scripts/bootstrap.sh');
  process.exit(1);
} else if (realpathSync(process.execPath) === realpathSync(pinned)) {
  import(pathToFileURL(main).href);
} else {
  // Handled before the program starts, so that no signal ends this process and leaves the program running.
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'];
  let forward;
  signals.forEach((signal) => {
    process.on(signal, () => forward(signal));
  });
  const child = spawn(pinned, [main].concat(process.argv.slice(2)), { stdio: 'inherit' });
  forward = (signal) => child.kill(signal);
  child.on('error', (error) => {
    console.error(`svc: could not start ${pinned}: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal]);
  });
}
