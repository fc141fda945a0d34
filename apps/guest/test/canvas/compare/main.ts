/**
 * Compares `canvas-render` with Chromium and writes the table of docs/canvas.md: `npm run compare:canvas`. Requires
 * Debian's chromium, poppler-utils, librsvg2-bin and the fonts of images/canvas.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { type Comparison, compareAll, FORMATS } from './compare.ts';

const PAGE = new URL('../../../../../docs/canvas.md', import.meta.url);
const TABLE = /(<!-- comparison -->\n)[\s\S]*?(<!-- \/comparison -->)/;

function tableOf(comparisons: readonly Comparison[]): string {
  const lines = comparisons.map(({ name, formats, svgIsImage }) => {
    const cells = FORMATS.map((format) => {
      const { ssim, difference } = formats[format];
      return `${ssim.toFixed(3)}, ${difference.toFixed(2)} %`;
    });
    return `| ${name} | ${cells.join(' | ')} | ${svgIsImage ? 'image' : 'vector'} |`;
  });
  const means = FORMATS.map((format) => {
    const sum = comparisons.reduce((total, { formats }) => total + formats[format].ssim, 0);
    return (sum / comparisons.length).toFixed(3);
  });
  return [
    '| Drawing | PNG | JPEG | PDF | SVG | SVG is |',
    '|---|---|---|---|---|---|',
    ...lines,
    `| mean | ${means.join(' | ')} | |`,
    '',
  ].join('\n');
}

const table = tableOf(await compareAll());
const page = await readFile(PAGE, 'utf8');
if (!TABLE.test(page)) throw new Error('docs/canvas.md has no place for the comparison');
await writeFile(
  PAGE,
  page.replace(TABLE, (_all, before, after) => `${before}${table}${after}`),
);
process.stdout.write(table);
