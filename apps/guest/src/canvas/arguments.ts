import { statSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { LIMITS, sizeProblem } from './limits.ts';

/** The format of an output file. */
export type Format = 'png' | 'jpeg' | 'svg' | 'pdf';

/** What to render, and how. */
export interface Job {
  /** Absolute path of the program. */
  readonly input: string;
  readonly kind: 'script' | 'page';
  /** Absolute path of the output file. */
  readonly output: string;
  readonly format: Format;
  /** The size asked for, in pixels. */
  readonly width?: number;
  readonly height?: number;
  /** Most animation frames. */
  readonly frames: number;
  /** Most seconds. */
  readonly timeout: number;
}

export const USAGE = `usage: canvas-render <in.html|in.js> -o <out.png|jpg|svg|pdf> [options]

Draws an HTML canvas program and writes the picture.

  -o, --output FILE  the picture; its extension is its format: png, jpg, jpeg, svg or pdf
  --width N          pixels, at most ${LIMITS.side}; with --height, at most ${LIMITS.pixels} in all
  --height N         pixels
  --frames N         animation frames to draw, ${LIMITS.frames.default} unless given, at most ${LIMITS.frames.most}
  --timeout N        seconds after which to give up, ${LIMITS.timeout.default} unless given, at most ${LIMITS.timeout.most}
  -h, --help         show this text

Exit status: 0 done, 1 the program failed (no file is written), 2 wrong usage.
`;

/** The command line is wrong. The message says how. */
export class UsageError extends Error {}

const KINDS: Readonly<Record<string, Job['kind']>> = {
  '.html': 'page',
  '.htm': 'page',
  '.js': 'script',
};
const FORMATS: Readonly<Record<string, Format>> = {
  '.png': 'png',
  '.jpg': 'jpeg',
  '.jpeg': 'jpeg',
  '.svg': 'svg',
  '.pdf': 'pdf',
};

/**
 * Reads the command line. Undefined: help is asked for.
 * @throws UsageError
 */
export function parseArguments(args: readonly string[]): Job | undefined {
  const { values, positionals } = parse(args);
  if (values.help === true) return undefined;
  const [input, ...more] = positionals;
  if (input === undefined) throw new UsageError('name the program: an .html or a .js file');
  if (more.length > 0) throw new UsageError(`one program at a time: ${more.join(' ')} is too much`);
  const kind = KINDS[extname(input).toLowerCase()];
  if (kind === undefined)
    throw new UsageError(`${input}: the program must be an .html or a .js file`);
  if (!isFile(input)) throw new UsageError(`${input}: there is no such file`);
  const { output } = values;
  if (output === undefined) throw new UsageError('name the output file with -o');
  const format = FORMATS[extname(output).toLowerCase()];
  if (format === undefined) {
    throw new UsageError(`${output}: the extension must be .png, .jpg, .jpeg, .svg or .pdf`);
  }
  checkTarget(output);
  const width = whole('--width', values.width, LIMITS.side);
  const height = whole('--height', values.height, LIMITS.side);
  const problem = sizeProblem({ width: width ?? 1, height: height ?? 1 });
  if (problem !== undefined) throw new UsageError(problem);
  return {
    input: resolve(input),
    kind,
    output: resolve(output),
    format,
    ...(width === undefined ? {} : { width }),
    ...(height === undefined ? {} : { height }),
    frames: whole('--frames', values.frames, LIMITS.frames.most) ?? LIMITS.frames.default,
    timeout: whole('--timeout', values.timeout, LIMITS.timeout.most) ?? LIMITS.timeout.default,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        output: { type: 'string', short: 'o' },
        width: { type: 'string' },
        height: { type: 'string' },
        frames: { type: 'string' },
        timeout: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function whole(option: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (value < 1 || value > most) {
    throw new UsageError(`${option} must be a whole number from 1 to ${most}, not ${text}`);
  }
  return value;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function checkTarget(output: string): void {
  const directory = dirname(resolve(output));
  if (!(statSync(directory, { throwIfNoEntry: false })?.isDirectory() ?? false)) {
    throw new UsageError(`${output}: there is no directory ${directory}`);
  }
  if (statSync(output, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`${output} is a directory`);
  }
}
