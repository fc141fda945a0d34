import { dirname } from 'node:path';
import { addressOf } from './page/address.ts';

const FRAME = /^\s+at /;

/**
 * What a program threw, in words: its message and, of the stack, the places in files below the folder of the program
 * `input`. Other places are those of the renderer.
 */
export function describeError(error: unknown, input?: string): string {
  const lines = textOf(error).split('\n');
  if (input === undefined) return lines[0] ?? '';
  const address = addressOf(input).href;
  return lines
    .filter((line) => !FRAME.test(line) || line.includes(dirname(input)))
    .map((line) => line.replace(address, input))
    .join('\n')
    .trimEnd();
}

function textOf(error: unknown): string {
  // An error of a page belongs to another realm and is no instance of this one's Error.
  if (typeof error === 'object' && error !== null && 'stack' in error) return String(error.stack);
  return String(error);
}
