import { createCanvas, loadImage } from '@napi-rs/canvas';
import { ssim } from 'ssim.js';

/** How alike two pictures are. */
export interface Similarity {
  /** The mean structural similarity: 1 is the same, 0 unrelated. */
  readonly ssim: number;
  /** The mean absolute difference of the colours, in percent of the whole range. */
  readonly difference: number;
}

interface Pixels {
  readonly data: Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/** Compares two pictures of the same size on white. Rejects if their sizes differ. */
export async function similarity(one: Buffer, other: Buffer): Promise<Similarity> {
  const [first, second] = await Promise.all([pixelsOf(one), pixelsOf(other)]);
  if (first.width !== second.width || first.height !== second.height) {
    const sizes = [first, second].map(({ width, height }) => `${width} × ${height}`);
    throw new Error(`the pictures have different sizes: ${sizes.join(' and ')}`);
  }
  let sum = 0;
  for (const [at, value] of first.data.entries()) sum += Math.abs(value - (second.data[at] ?? 0));
  // The alpha of a picture on white never differs.
  const values = (first.data.length / 4) * 3;
  return { ssim: ssim(first, second).mssim, difference: (sum / values / 255) * 100 };
}

async function pixelsOf(picture: Buffer): Promise<Pixels> {
  const image = await loadImage(picture);
  const { width, height } = image;
  const canvas = createCanvas(width, height);
  const context = canvas.getContext('2d');
  context.fillStyle = 'white';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  return { data: new Uint8ClampedArray(data.buffer), width, height };
}
