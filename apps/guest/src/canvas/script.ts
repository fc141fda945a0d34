import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { constants, Script } from 'node:vm';
import {
  type Canvas,
  createCanvas,
  DOMMatrix,
  DOMPoint,
  DOMRect,
  Image,
  ImageData,
  Path2D,
} from '@napi-rs/canvas';
import type { Job } from './arguments.ts';
import { loadPicture } from './drawing/index.ts';
import { FrameQueue } from './frame-queue.ts';
import { checkSize, DEFAULT_SIZE } from './limits.ts';

/**
 * Runs a `.js` program, which draws on `ctx` and may await, then the animation frames it asked for. Rejects with
 * whatever the program throws.
 */
export async function drawScript({ input, frames, ...asked }: Job): Promise<Canvas> {
  const { width, height } = { ...DEFAULT_SIZE, ...asked };
  checkSize({ width, height });
  const canvas = createCanvas(width, height);
  const queue = new FrameQueue();
  const url = pathToFileURL(input);
  const names = {
    canvas,
    ctx: canvas.getContext('2d'),
    width,
    height,
    loadImage: (source: string | URL | Uint8Array) =>
      source instanceof Uint8Array ? loadBytes(source) : loadPicture(new URL(source, url)),
    requestAnimationFrame: queue.request,
    cancelAnimationFrame: queue.cancel,
    require: createRequire(url),
    __filename: input,
    __dirname: dirname(input),
    createCanvas,
    DOMMatrix,
    DOMPoint,
    DOMRect,
    Image,
    ImageData,
    Path2D,
  };
  await compile(await readFile(input, 'utf8'), input, Object.keys(names))(...Object.values(names));
  await queue.run(frames);
  return canvas;
}

type Program = (...values: readonly unknown[]) => Promise<unknown>;

/** The program as a function of these names. Its lines and columns are those of the file. */
function compile(source: string, filename: string, names: readonly string[]): Program {
  const head = `(async function (${names.join(', ')}) {`;
  const text = source.startsWith('#!') ? `//${source}` : source;
  const script = new Script(`${head}${text}\n})`, {
    filename,
    columnOffset: -head.length,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  return script.runInThisContext() as Program;
}

async function loadBytes(bytes: Uint8Array): Promise<Image> {
  const image = new Image();
  image.src = bytes;
  await image.decode();
  return image;
}
