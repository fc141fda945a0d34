import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { CliError } from '../output/errors.ts';

const EXAMPLE =
  'write NAME=value lines or a JSON object with text values, or use --key for one value';

/**
 * Reads secret values from `file`, or from standard input if it is `-`: NAME=value lines or a JSON object of strings.
 * With `key`, the whole input is the value of that key.
 * @throws CliError `file_unreadable`, `no_values`, `values_invalid`; its message never contains the input
 */
export async function readValues(
  file: string,
  key: string | undefined,
): Promise<Readonly<Record<string, string>>> {
  const input = await read(file);
  if (key !== undefined) return { [key]: withoutFinalNewline(input) };
  const values = input.trimStart().startsWith('{') ? parseJson(input) : parseLines(input);
  if (Object.keys(values).length === 0) {
    throw new CliError('no_values', 'the input contains no values', { next: EXAMPLE });
  }
  return values;
}

async function read(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (cause) {
    throw new CliError('file_unreadable', `cannot read ${file}`, {
      next: 'check the path and its permissions',
      cause,
    });
  }
}

/** The newline at the end of a file with a single value is not part of the value. */
function withoutFinalNewline(input: string): string {
  return input.replace(/\r?\n$/, '');
}

function parseLines(input: string): Record<string, string> {
  const values = Object.entries(parseEnv(input)).map(([name, value]) => [name, value ?? '']);
  return Object.fromEntries(values);
}

function parseJson(input: string): Record<string, string> {
  const problem = new CliError(
    'values_invalid',
    'the input is not a JSON object with text values',
    {
      next: EXAMPLE,
    },
  );
  let parsed: unknown;
  try {
    parsed = JSON.parse(input);
  } catch {
    throw problem;
  }
  if (typeof parsed !== 'object' || parsed === null) throw problem;
  const entries = Object.entries(parsed);
  if (!entries.every(([, value]) => typeof value === 'string')) throw problem;
  return Object.fromEntries(entries);
}
