import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { INTERRUPTS } from './interrupts.ts';

const MODULE = new URL('interrupts.ts', import.meta.url).href;

/** Prints when it is ready and when it is interrupted, and ends at a line of input. */
const PROGRAM = `
  const { interruptSignal } = await import('${MODULE}');
  const signal = interruptSignal();
  signal.addEventListener('abort', () => console.log(signal.reason.message));
  process.stdin.once('data', () => process.exit(signal.aborted ? 7 : 1));
  console.log('ready');`;

test.each(INTERRUPTS)(
  'a program that %s interrupts twice cleans up before it ends',
  async (name) => {
    const program = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(program, 'exit');
    await once(program.stdout, 'data');
    program.kill(name);
    expect(String(await once(program.stdout, 'data'))).toBe(`ended by ${name}\n`);
    program.kill(name);
    program.stdin.write('end\n');
    expect(await exited).toEqual([7, null]);
  },
);
