import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../main.ts', import.meta.url));

/** What a command left behind. */
export interface Outcome {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** A command line whose commands all see one environment, and nothing of the tester's own settings. */
export function commandLine(
  environment: Readonly<Record<string, string>>,
): (args: readonly string[], input?: string) => Promise<Outcome> {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SVC|XDG)_/.test(name));
  const env = { ...Object.fromEntries(inherited), ...environment };
  return async (args, input = '') => {
    const child = spawn(process.execPath, [MAIN, ...args], { env });
    child.stdin.end(input);
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code: Number(code), output, errors };
  };
}
