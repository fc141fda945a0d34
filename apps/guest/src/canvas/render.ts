import type { Canvas } from '@napi-rs/canvas';
import type { Job } from './arguments.ts';
import { prepareDrawing } from './drawing/index.ts';
import { checkSize, type Size } from './limits.ts';
import { encode } from './output/index.ts';

/**
 * Runs a program and answers the picture it drew, in the format of the job. Rejects with whatever the program throws.
 */
export async function render(job: Job): Promise<Uint8Array> {
  prepareDrawing();
  const canvas = await draw(job);
  const size = outputSize(job, canvas);
  checkSize(size);
  return encode(canvas, job.format, size);
}

// Each kind of program loads its own libraries only when it is asked for: a DOM takes time to load.
async function draw(job: Job): Promise<Canvas> {
  if (job.kind === 'script') return (await import('./script.ts')).drawScript(job);
  return (await import('./page/index.ts')).drawPage(job);
}

/** The size of the picture: the one asked for, or that of the canvas. One side alone keeps the canvas's proportions. */
function outputSize({ width, height }: Job, canvas: Size): Size {
  const across = canvas.width / canvas.height;
  if (width !== undefined && height !== undefined) return { width, height };
  if (width !== undefined) return { width, height: Math.max(1, Math.round(width / across)) };
  if (height !== undefined) return { width: Math.max(1, Math.round(height * across)), height };
  return { width: canvas.width, height: canvas.height };
}
