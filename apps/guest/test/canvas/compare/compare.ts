import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Format } from '../../../src/canvas/arguments.ts';
import { type Drawing, drawWithChromium } from './chromium.ts';
import { rasterise } from './rasterise.ts';
import { type Similarity, similarity } from './similarity.ts';

const DRAWINGS = fileURLToPath(new URL('../drawings/', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../../src/canvas/main.ts', import.meta.url));
const SIZE = { width: 320, height: 240 } as const;

export const FORMATS = ['png', 'jpeg', 'pdf', 'svg'] as const satisfies Format[];

/** How one drawing compares with Chromium's. */
export interface Comparison {
  readonly name: string;
  readonly formats: Readonly<Record<Format, Similarity>>;
  /** Whether the SVG contains the drawing as an image. */
  readonly svgIsImage: boolean;
}

/** Draws every test drawing with `canvas-render` in each format and with Chromium, and compares them. */
export async function compareAll(): Promise<Comparison[]> {
  const files = (await readdir(DRAWINGS)).filter((name) => name.endsWith('.js')).sort();
  const drawings = files.map((file) => ({
    name: basename(file, '.js'),
    file: join(DRAWINGS, file),
  }));
  const expected = await drawWithChromium(drawings, SIZE);
  const directory = await mkdtemp(join(tmpdir(), 'svc-canvas-compare-'));
  try {
    const comparisons: Comparison[] = [];
    for (const drawing of drawings) {
      const reference = expected.get(drawing.name);
      if (reference === undefined) throw new Error(`Chromium did not draw ${drawing.name}`);
      comparisons.push(await compare(drawing, reference, directory));
    }
    return comparisons;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function compare(
  { name, file }: Drawing,
  reference: Buffer,
  directory: string,
): Promise<Comparison> {
  const path = (format: Format) => join(directory, `${name}.${format}`);
  const of = async (format: Format): Promise<Similarity> => {
    const size = ['--width', String(SIZE.width), '--height', String(SIZE.height)];
    await promisify(execFile)(process.execPath, [PROGRAM, file, '-o', path(format), ...size]);
    return similarity(await rasterise(path(format), format), reference);
  };
  const formats = {
    png: await of('png'),
    jpeg: await of('jpeg'),
    pdf: await of('pdf'),
    svg: await of('svg'),
  };
  const svg = await readFile(path('svg'), 'utf8');
  return { name, formats, svgIsImage: svg.includes('<image width="320" height="240"') };
}
