/** Pixels of a side of the squares that are compared. */
const SQUARE = 8;
/** The difference of the mean colours of a square, of 255, from which on it counts as another picture. */
const TOLERANCE = 24;
const CHANNELS = 4;

/**
 * Whether two pictures of RGBA pixels differ by more than the smoothing of edges: whether the mean colours of any small
 * square do. They show on white.
 */
export function differs(one: Uint8ClampedArray, other: Uint8ClampedArray, width: number): boolean {
  const columns = Math.ceil(width / SQUARE);
  const rows = Math.ceil(one.length / CHANNELS / width / SQUARE);
  // The differences of the three colours of each square.
  const sums = new Float64Array(columns * rows * 3);
  for (let at = 0; at < one.length; at += CHANNELS) {
    const pixel = at / CHANNELS;
    const row = Math.floor(pixel / width / SQUARE);
    const square = (row * columns + Math.floor((pixel % width) / SQUARE)) * 3;
    for (let colour = 0; colour < 3; colour += 1) {
      const difference = onWhite(one, at, colour) - onWhite(other, at, colour);
      sums[square + colour] = (sums[square + colour] ?? 0) + difference;
    }
  }
  return sums.some((sum) => Math.abs(sum) / (SQUARE * SQUARE) > TOLERANCE);
}

function onWhite(pixels: Uint8ClampedArray, at: number, colour: number): number {
  const [value = 0, alpha = 0] = [pixels[at + colour], pixels[at + 3]];
  return 255 + ((value - 255) * alpha) / 255;
}
