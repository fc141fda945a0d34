import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { CliError } from '../../output/cli-error.ts';

const EXAMPLE =
  'write NAME=value lines or a JSON object with text values, or use --key for one value';

/**
 * The values in `file` (`-`: standard input): NAME=value lines, a JSON object, or, with `key`, one value.
 * @throws CliError that never shows what was read
 */
export async function readValues(
  file: string,
  key: string | undefined,
): Promise<Readonly<Record<string, string>>> {
  const input = await read(file);
  if (key !== undefined) return { [key]: withoutLineEnd(input) };
  const values = input.trimStart().startsWith('{') ? parseJson(input) : parseLines(input);
  if (Object.keys(values).length === 0) {
    throw new CliError('no_values', 'there are no values in the input', { next: EXAMPLE });
  }
  return values;
}

async function read(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (cause) {
    throw new CliError('file_unreadable', `${file} cannot be read`, {
      next: 'check the path and its permissions',
      cause,
    });
  }
}

/** A file that holds one value ends in a line end that is no part of it. */
function withoutLineEnd(input: string): string {
  return input.replace(/\r?\n$/, '');
}

function parseLines(input: string): Record<string, string> {
  const values = Object.entries(parseEnv(input)).map(([name, value]) => [name, value ?? '']);
  return Object.fromEntries(values);
}

function parseJson(input: string): Record<string, string> {
  const problem = new CliError('values_invalid', 'the input is not a JSON object of text values', {
    next: EXAMPLE,
  });
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
