import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

type Environment = Readonly<Record<string, string>>;

/** The exit code and the output of a command. */
export interface Outcome {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** Starts a command with `environment` and without the `SVC_` and `XDG_` variables of the test process. */
export function startSvc(
  environment: Environment,
  args: readonly string[],
): ChildProcessByStdio<Writable, Readable, Readable> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SVC|XDG)_/.test(name));
  const env = { ...Object.fromEntries(inherited), ...environment };
  return spawn(process.execPath, [MAIN, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'] });
}

/** Returns a function that runs commands in the given environment until they exit. */
export function commandLine(
  environment: Environment,
): (args: readonly string[], input?: string) => Promise<Outcome> {
  return async (args, input = '') => {
    const child = startSvc(environment, args);
    child.stdin.end(input);
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code: Number(code), output, errors };
  };
}
