import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Format } from '../../../src/canvas/arguments.ts';

const RUN_MS = 60_000;

/** The pixels of a picture as PNG or JPEG: PDF is drawn by Debian's `pdftoppm`, SVG by its `rsvg-convert`. */
export async function rasterise(file: string, format: Format): Promise<Buffer> {
  const png = `${file}.png`;
  const run = (program: string, args: readonly string[]) =>
    promisify(execFile)(program, args, { timeout: RUN_MS });
  switch (format) {
    case 'png':
    case 'jpeg':
      return readFile(file);
    case 'pdf':
      // 72 points per inch: a point of the page is a pixel of the canvas.
      await run('pdftoppm', ['-png', '-r', '72', '-singlefile', file, file]);
      return readFile(png);
    case 'svg':
      await run('rsvg-convert', ['--background-color', 'white', '--output', png, file]);
      return readFile(png);
  }
}
